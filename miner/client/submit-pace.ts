/**
 * The shares that a connection sends in a second: no more than the server takes, so that nobody behind a proxy, however fast, gets
 * it banned. What comes sooner waits its turn, for a few seconds at the most: a share that waits for longer may be late, and a
 * pool that refuses late shares is honest. Where more are found than can be sent, the easiest are given up. Pure; the time is
 * passed in.
 */
import { type Bucket, type BucketRate, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import { PACE } from '../work/pace.ts';
import type { Pending } from './pending-shares.ts';

export const SUBMIT_PACE = { longestWaitMillis: 5_000 } as const;
/** A server takes twice as many at once: they may come together on their way. */
const BURST_SECONDS = 5;

const rateOf = (perSecond: number): BucketRate => ({ perSecond, burst: BURST_SECONDS * perSecond });

const hashWork = ({ share }: Pending): number => share.hashWork ?? Number(share.work);

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

  /** The share that is given up for it, where there are too many: the one of the easiest hash. */
  wait(pending: Pending): Pending | undefined {
    this.#waiting.push(pending);
    if (this.#waiting.length <= (this.#rate.perSecond * SUBMIT_PACE.longestWaitMillis) / 1_000) return undefined;
    const easiest = this.#waiting.reduce((a, b) => (hashWork(b) < hashWork(a) ? b : a));
    this.#waiting = this.#waiting.filter((each) => each !== easiest);
    return easiest;
  }

  /** Those that waited, to be tried again in their order. */
  takeWaiting(): readonly Pending[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
