/** The names of a farm's rigs on one connection (docs/protocol/stratum.md, S74): the server knows each by an index. */
import { namesRate, type Rig } from '../../protocol/stratum/farm.ts';
import { type Bucket, type BucketRate, fullBucket, take } from '../../runtime/clients/token-bucket.ts';

/** Half of what a server takes: messages may come together. */
const NAMES_AT_ONCE = 1;

export class FarmRigs {
  readonly #most: number;
  readonly #rate: BucketRate;
  #namesLeft: Bucket | undefined;
  /** The one that had no share for longest is the first. */
  readonly #indexes = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
    this.#rate = namesRate(most, NAMES_AT_ONCE);
  }

  /**
   * The index of a rig, and what the server must be told before it is used. With more rigs than indexes, the one that was silent
   * for longest gives its own. Where names would change more often than the server takes it, the share goes under that rig's name.
   */
  of(worker: string, nowMillis: number): { readonly index: number; readonly news: Rig | undefined } {
    const known = this.#indexes.get(worker);
    if (known !== undefined) {
      this.#indexes.delete(worker);
      this.#indexes.set(worker, known);
      return { index: known, news: undefined };
    }
    let index = this.#indexes.size;
    const [oldest] = this.#indexes;
    const left = take(this.#namesLeft ?? fullBucket(this.#rate, nowMillis), this.#rate, nowMillis);
    if (left === undefined && oldest !== undefined) return { index: oldest[1], news: undefined };
    this.#namesLeft = left;
    if (index >= this.#most && oldest !== undefined) {
      index = oldest[1];
      this.#indexes.delete(oldest[0]);
    }
    this.#indexes.set(worker, index);
    return { index, news: { index, worker } };
  }
}
