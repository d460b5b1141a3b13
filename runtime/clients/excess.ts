/**
 * Input of connections that submit more than they may. Each refusal is cheap, but a connection can send tens of thousands
 * a second, and everybody else on the thread would wait while they are read: so an address has an allowance of them. Who
 * exceeds it is not read until it is regained, and then one connection of an address at a time. Nothing is lost: what is
 * not read waits at the sender.
 */
import { type Bucket, type BucketRate, fullBucket, refill } from './token-bucket.ts';

/** Submits beyond the limits of their connections that are read from one address. */
export const EXCESS_RATE: BucketRate = { perSecond: 2_000, burst: 1_000 };

type Sender = { readonly client: string; readonly peer: { pause(): void; resume(): void } };
type Debt<T> = { bucket: Bucket; readonly paused: Set<T> };

export class Excess<T extends Sender> {
  readonly #debts = new Map<string, Debt<T>>();

  /** Addresses that exceeded something a moment ago. */
  get size(): number {
    return this.#debts.size;
  }

  add(sender: T, nowMillis: number): void {
    const { client, peer } = sender;
    const debt = this.#debts.get(client) ?? { bucket: fullBucket(EXCESS_RATE, nowMillis), paused: new Set() };
    this.#debts.set(client, debt);
    const { tokens } = refill(debt.bucket, EXCESS_RATE, nowMillis);
    debt.bucket = { tokens: tokens - 1, atMillis: nowMillis };
    if (tokens > 1 || debt.paused.has(sender)) return;
    debt.paused.add(sender);
    peer.pause();
  }

  forget(sender: T): void {
    this.#debts.get(sender.client)?.paused.delete(sender);
  }

  /** At every tick. */
  settle(nowMillis: number): void {
    for (const [client, debt] of this.#debts) {
      debt.bucket = refill(debt.bucket, EXCESS_RATE, nowMillis);
      const { tokens } = debt.bucket;
      const [next] = debt.paused;
      if (next === undefined) {
        if (tokens >= EXCESS_RATE.burst) this.#debts.delete(client);
      } else if (tokens > 0) {
        debt.paused.delete(next);
        next.peer.resume();
      }
    }
  }
}
