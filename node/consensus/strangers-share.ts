/** Bytes that strangers may still be sent, those of one address and all together. */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { type Bucket, fullBucket, take } from '../../runtime/token-bucket.ts';
import { MAX_COUNTED, SENT_TO_STRANGERS } from './overlay-limits.ts';

export class SentToStrangers {
  readonly #steady: () => number;
  readonly #ofAddress = new BoundedMap<string, Bucket>(MAX_COUNTED);
  #together: Bucket;

  constructor(steady: () => number) {
    this.#steady = steady;
    this.#together = fullBucket(SENT_TO_STRANGERS.together, steady());
  }

  /** Whether there is room for so many bytes more; they are counted where there is. */
  take(address: string, bytes: number): boolean {
    const { ofOneAddress, together } = SENT_TO_STRANGERS;
    const now = this.#steady();
    const own = take(this.#ofAddress.get(address) ?? fullBucket(ofOneAddress, now), ofOneAddress, now, bytes);
    const all = take(this.#together, together, now, bytes);
    if (own === undefined || all === undefined) return false;
    this.#ofAddress.set(address, own);
    this.#together = all;
    return true;
  }
}
