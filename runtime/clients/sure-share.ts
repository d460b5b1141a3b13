/**
 * A common allowance (fair-share.ts), of which each client has a small sure part besides: those that came first may have taken the rest a moment ago, and
 * it takes a while until all have the same. For clients that are few, because the sure parts add up.
 */
import { Buckets } from './buckets.ts';
import { FairShare } from './fair-share.ts';
import { type BucketRate, fullBucket, refill } from './token-bucket.ts';

export type SureRate = { readonly all: BucketRate; readonly sure: BucketRate };

export class SureShare {
  readonly #rate: BucketRate;
  readonly #sure: Buckets;
  readonly #rest: FairShare;

  /** `most`: clients whose sure parts are remembered. */
  constructor({ all, sure }: SureRate, most: number, nowMillis: number) {
    this.#rate = sure;
    this.#sure = new Buckets(sure, most);
    this.#rest = new FairShare(all, nowMillis);
  }

  has(client: string, nowMillis: number, cost = 1): boolean {
    const left = refill(this.#sure.get(client) ?? fullBucket(this.#rate, nowMillis), this.#rate, nowMillis).tokens;
    return left >= cost || this.#rest.has(client, nowMillis, cost);
  }

  take(client: string, nowMillis: number, cost = 1): boolean {
    return this.#sure.take(client, nowMillis, cost) || this.#rest.take(client, nowMillis, cost);
  }
}
