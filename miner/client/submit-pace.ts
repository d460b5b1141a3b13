/**
 * The shares that a connection sends in a second: no more than the server takes, so that nobody behind a proxy, however fast, gets
 * it banned. What comes sooner waits its turn. Pure; the time is passed in.
 */
import { type Bucket, type BucketRate, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import { PACE } from '../work/pace.ts';
import type { Pending } from './pending-shares.ts';

/** A server takes twice as many at once: they may come together on their way. */
const BURST_SECONDS = 5;

const rateOf = (perSecond: number): BucketRate => ({ perSecond, burst: BURST_SECONDS * perSecond });

export class SubmitPace {
  #rate = rateOf(PACE.sharesPerSecond);
  #bucket: Bucket | undefined;
  #waiting: Pending[] = [];

  /** As the server offers it (S70). */
  set perSecond(most: number) {
    this.#rate = rateOf(Math.max(1, most));
    this.#bucket = undefined;
  }

  get waiting(): readonly Pending[] {
    return this.#waiting;
  }

  /** Whether it may be sent now. */
  take(nowMillis: number): boolean {
    const left = take(this.#bucket ?? fullBucket(this.#rate, nowMillis), this.#rate, nowMillis);
    if (left !== undefined) this.#bucket = left;
    return left !== undefined;
  }

  wait(pending: Pending): void {
    this.#waiting.push(pending);
  }

  /** Those that waited, to be tried again in their order. */
  takeWaiting(): readonly Pending[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
