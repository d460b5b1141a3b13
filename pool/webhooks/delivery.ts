/**
 * The rule of all deliveries of the pool (docs/notices.md): what waits is in the database, so that no crash and no change of
 * the accountant, who alone delivers, loses any; rounds of sending are repeated until it ends. Senders say what a round is.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../runtime/log/log.ts';

/** Until the next attempt: doubling from one second to ten minutes. */
export const retryMillis = (attempts: number): number => Math.min(600_000, 1_000 * 2 ** Math.min(attempts, 20));

export class Delivery {
  readonly #stop = new AbortController();
  /** Requests end with it. */
  readonly signal = this.#stop.signal;
  readonly #loop: Promise<void>;

  /** `waits` is logged while the database does not answer; `round` returns whether there may be more to send at once. */
  constructor(
    { pollMillis, log, waits }: { readonly pollMillis: number; readonly log: Logger; readonly waits: string },
    round: () => Promise<boolean>,
  ) {
    // The caller has this delivery in hand when the first round begins.
    this.#loop = Promise.resolve().then(async () => {
      while (!this.signal.aborted) {
        const isMore = await round().catch((error: Error) => log.debug(waits, { reason: error.message }));
        if (isMore !== true) await sleep(pollMillis, undefined, { signal: this.signal }).catch(() => undefined);
      }
    });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }
}
