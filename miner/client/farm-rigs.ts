/** The names of a farm's rigs on one connection (docs/protocol/stratum.md, S74): the server knows each by an index. */
import type { Rig } from '../../protocol/stratum/farm.ts';

export class FarmRigs {
  readonly #most: number;
  /** The one that had no share for longest is the first. */
  readonly #indexes = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** The index of a rig, and what the server must be told before it is used. With more rigs than indexes, the one that was silent for longest gives its own. */
  of(worker: string): { readonly index: number; readonly news: Rig | undefined } {
    const known = this.#indexes.get(worker);
    if (known !== undefined) {
      this.#indexes.delete(worker);
      this.#indexes.set(worker, known);
      return { index: known, news: undefined };
    }
    let index = this.#indexes.size;
    const [oldest] = this.#indexes;
    if (index >= this.#most && oldest !== undefined) {
      index = oldest[1];
      this.#indexes.delete(oldest[0]);
    }
    this.#indexes.set(worker, index);
    return { index, news: { index, worker } };
  }
}
