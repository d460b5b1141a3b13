/** An allowance that strangers share: those of one address have a part of it, so that none can take it all. */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { type Bucket, fullBucket, take } from '../../runtime/token-bucket.ts';
import type { Rate } from './allowance.ts';
import { MAX_COUNTED } from './overlay-limits.ts';

export type SharedRates = { readonly ofOneAddress: Rate; readonly together: Rate };

export class StrangersShare {
  readonly #rates: SharedRates;
  readonly #steady: () => number;
  readonly #ofAddress = new BoundedMap<string, Bucket>(MAX_COUNTED);
  #together: Bucket;

  constructor(rates: SharedRates, steady: () => number) {
    this.#rates = rates;
    this.#steady = steady;
    this.#together = fullBucket(rates.together, steady());
  }

  /** Whether there is room for so many more; they are counted where there is. */
  take(address: string, count: number): boolean {
    const { ofOneAddress, together } = this.#rates;
    const now = this.#steady();
    const own = take(this.#ofAddress.get(address) ?? fullBucket(ofOneAddress, now), ofOneAddress, now, count);
    const all = take(this.#together, together, now, count);
    if (own === undefined || all === undefined) return false;
    this.#ofAddress.set(address, own);
    this.#together = all;
    return true;
  }
}
