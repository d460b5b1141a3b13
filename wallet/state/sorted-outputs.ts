/**
 * The outputs that can be spent now, ordered by amount. Selection needs this order repeatedly while payments remove
 * outputs, so it is maintained instead of sorted each time: a wallet may hold tens of thousands of small rewards.
 */
import type { OwnedOutput } from './records.ts';

const before = (a: OwnedOutput, b: OwnedOutput): boolean =>
  a.amount < b.amount || (a.amount === b.amount && a.key < b.key);

export class SortedOutputs {
  readonly #list: OwnedOutput[];
  #total = 0n;

  constructor(outputs: Iterable<OwnedOutput> = []) {
    this.#list = [...outputs].sort((a, b) => (before(a, b) ? -1 : 1));
    for (const output of this.#list) this.#total += output.amount;
  }

  get size(): number {
    return this.#list.length;
  }

  get total(): bigint {
    return this.#total;
  }

  /** From the smallest; a negative place counts from the largest, which is -1. */
  at(place: number): OwnedOutput | undefined {
    return this.#list.at(place);
  }

  /** The smallest output of at least this amount. */
  atLeast(amount: bigint): OwnedOutput | undefined {
    let [low, high] = [0, this.#list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#list[middle] as OwnedOutput).amount < amount) low = middle + 1;
      else high = middle;
    }
    return this.#list[low];
  }

  add(output: OwnedOutput): void {
    const place = this.#place(output);
    if (this.#list[place]?.key === output.key) return;
    this.#list.splice(place, 0, output);
    this.#total += output.amount;
  }

  remove(output: OwnedOutput): boolean {
    const place = this.#place(output);
    if (this.#list[place]?.key !== output.key) return false;
    this.#list.splice(place, 1);
    this.#total -= output.amount;
    return true;
  }

  has(output: OwnedOutput): boolean {
    return this.#list[this.#place(output)]?.key === output.key;
  }

  [Symbol.iterator](): IterableIterator<OwnedOutput> {
    return this.#list[Symbol.iterator]();
  }

  #place(output: OwnedOutput): number {
    let [low, high] = [0, this.#list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(this.#list[middle] as OwnedOutput, output)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
