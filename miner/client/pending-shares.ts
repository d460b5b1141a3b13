/**
 * Shares that wait for answers, and the totals of the answers: which were accepted, and whether they were credited in full.
 * Pure.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { CODE, type ErrorReply } from '../../protocol/stratum/errors.ts';
import type { Sending } from './refusals.ts';
import type { Share, Verdict } from './session-events.ts';

/**
 * `again`: sent a second time, after a connection broke. `sending`: of one that was sent.
 * `blockId`: the server said that it is a block; the answer itself comes later.
 */
export type Pending = {
  readonly share: Share;
  readonly again: boolean;
  readonly sending?: Sending;
  blockId?: Bytes;
};

/** Accepted work that was not credited. */
export type Shortfall = { readonly credited: bigint; readonly earned: bigint };

export class PendingShares {
  readonly #pending = new Map<number, Pending>();
  #sequence = 0;
  #workSum: bigint | undefined;
  /** What was credited beyond what is acknowledged: a server may have judged later shares before an earlier one (S27). */
  #ahead = { count: 0, work: 0n };

  get size(): number {
    return this.#pending.size;
  }

  get shares(): readonly Share[] {
    return [...this.#pending.values()].map(({ share }) => share);
  }

  /** When the one was sent that waits for longest. */
  get oldest(): number | undefined {
    for (const { sending } of this.#pending.values()) return sending?.atMillis;
    return undefined;
  }

  /** Of each that was sent. */
  get sendings(): readonly Sending[] {
    return [...this.#pending.values()].flatMap(({ sending }) => sending ?? []);
  }

  /** How many were sent before this. */
  sentBefore(millis: number): number {
    let count = 0;
    for (const { sending } of this.#pending.values()) {
      if (sending === undefined || sending.atMillis >= millis) break;
      count++;
    }
    return count;
  }

  /** The number under which it is sent. */
  add(pending: Pending): number {
    this.#pending.set(++this.#sequence, pending);
    return this.#sequence;
  }

  /** v2: a share that waits is a block. */
  found(sequence: number, blockId: Bytes): void {
    const pending = this.#pending.get(sequence);
    if (pending !== undefined) pending.blockId = blockId;
  }

  #take(sequence: number): Pending | undefined {
    const pending = this.#pending.get(sequence);
    this.#pending.delete(sequence);
    return pending;
  }

  /** v1: one answer to one share. Undefined when it was not sent. */
  accepted(sequence: number, work: bigint): { pending: Pending; short: Shortfall | undefined } | undefined {
    const pending = this.#take(sequence);
    if (pending === undefined) return undefined;
    const earned = pending.share.work;
    return { pending, short: work < earned ? { credited: work, earned } : undefined };
  }

  /** v2: all through this one are judged. Undefined when it was not sent. */
  acknowledged(
    through: number,
    count: number,
    workSum: bigint,
  ): { pending: Pending[]; short: Shortfall | undefined } | undefined {
    if (through > this.#sequence) return undefined;
    const judged = [...this.#pending].filter(([sequence]) => sequence <= through);
    for (const [sequence] of judged) this.#pending.delete(sequence);
    const pending = judged.map(([, one]) => one);
    const earned = pending.reduce((sum, { share }) => sum + share.work, 0n);
    const ahead = this.#ahead.count + count - pending.length;
    // The sum covers the whole session; the first one received is the baseline of this connection.
    const credited = this.#workSum === undefined ? earned + this.#largest(ahead) : workSum - this.#workSum;
    const aheadWork = this.#ahead.work + credited - earned;
    this.#workSum = workSum;
    this.#ahead = { count: Math.max(ahead, 0), work: aheadWork > 0n ? aheadWork : 0n };
    return { pending, short: ahead < 0 || aheadWork < 0n ? { credited, earned } : undefined };
  }

  /** The work of this many of those that wait, of the largest. */
  #largest(count: number): bigint {
    if (count <= 0) return 0n;
    const works = this.shares.map(({ work }) => work).sort((a, b) => (a < b ? 1 : -1));
    return works.slice(0, count).reduce((sum, work) => sum + work, 0n);
  }

  rejected(sequence: number, { code }: ErrorReply): { pending: Pending; verdict: Verdict } | undefined {
    const pending = this.#take(sequence);
    if (pending === undefined) return undefined;
    // A share sent again after a lost connection was counted the first time.
    if (code === CODE.duplicate && pending.again) return { pending, verdict: 'accepted' };
    return { pending, verdict: code === CODE.unknown_job ? 'stale' : 'rejected' };
  }
}
