/**
 * A common allowance that several clients use: nobody may have taken more of it than is left for the others. A client
 * alone has half of it at once and all that it regains; of k clients that take what they can, each has the same part,
 * and one that comes later finds as much as each of them. What is regained is regained by all in proportion to what
 * they took, so the sum of all is always what is missing. Memory is bounded by the allowance.
 */
import type { BucketRate } from './token-bucket.ts';

/** Less than this is forgotten when there are many clients. */
const SMALL = 0.5;
const LEAST_FACTOR = 1e-9;

export class FairShare {
  readonly #rate: BucketRate;
  /** Taken by each, divided by the factor. */
  readonly #taken = new Map<string, number>();
  #factor = 1;
  #sum = 0;
  #atMillis: number;

  constructor(rate: BucketRate, nowMillis: number) {
    this.#rate = rate;
    this.#atMillis = nowMillis;
  }

  get clients(): number {
    return this.#taken.size;
  }

  /** What it has taken and was not regained. */
  taken(client: string, nowMillis: number): number {
    this.#regain(nowMillis);
    return this.#of(client);
  }

  has(client: string, nowMillis: number, cost = 1): boolean {
    this.#regain(nowMillis);
    return this.#of(client) + cost <= this.#rate.burst - this.#sum;
  }

  take(client: string, nowMillis: number, cost = 1): boolean {
    if (!this.has(client, nowMillis, cost)) return false;
    this.charge(client, nowMillis, cost);
    return true;
  }

  /** What was used already, where the cost is known only afterwards. */
  charge(client: string, nowMillis: number, cost: number): void {
    this.#regain(nowMillis);
    this.#taken.set(client, (this.#of(client) + cost) / this.#factor);
    this.#sum += cost;
    if (this.#taken.size > 2 * this.#rate.burst + 1 / SMALL) this.#forget();
  }

  #of(client: string): number {
    return (this.#taken.get(client) ?? 0) * this.#factor;
  }

  /** A clock going back adds nothing. */
  #regain(nowMillis: number): void {
    const regained = (Math.max(0, nowMillis - this.#atMillis) * this.#rate.perSecond) / 1000;
    this.#atMillis = nowMillis;
    if (regained === 0) return;
    if (regained >= this.#sum) {
      this.#taken.clear();
      this.#factor = 1;
      this.#sum = 0;
      return;
    }
    this.#factor *= 1 - regained / this.#sum;
    this.#sum -= regained;
    if (this.#factor < LEAST_FACTOR) this.#forget();
  }

  #forget(): void {
    for (const client of this.#taken.keys()) {
      const taken = this.#of(client);
      if (taken < SMALL) this.#taken.delete(client);
      else this.#taken.set(client, taken);
    }
    this.#factor = 1;
  }
}
