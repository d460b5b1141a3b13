/** Token buckets by name: what one client, peer or address may cost. */
import { BoundedMap } from '../bounded-map.ts';
import { type Bucket, type BucketRate, fullBucket, take } from './token-bucket.ts';

/** A token bucket for each name. Beyond `most` names, those used longest ago are forgotten: their buckets are full again. */
export class Buckets extends BoundedMap<string, Bucket> {
  readonly #rate: BucketRate;

  constructor(rate: BucketRate, most = Number.POSITIVE_INFINITY) {
    super(most);
    this.#rate = rate;
  }

  /** False, and nothing is taken, where the bucket does not hold that much. */
  take(name: string, nowMillis: number, cost = 1): boolean {
    const bucket = take(this.use(name) ?? fullBucket(this.#rate, nowMillis), this.#rate, nowMillis, cost);
    if (bucket !== undefined) this.set(name, bucket);
    return bucket !== undefined;
  }
}
