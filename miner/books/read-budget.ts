/**
 * Time limit for all answers of a pool in one round of a watch. Each answer has its own limit, but a pool chooses the
 * number of pages: with slow pages a round would last for hours, and the user would not learn that the books are not
 * checked. A pool that asks to wait (`retry-after`) is not asked again before that time.
 */
import { PoolSilence } from '../../protocol/books/pool-silence.ts';

const ROUND_MILLIS = 10 * 60_000;
/** A pool that asks for more is asked after this time. */
const MAX_WAIT = 10 * 60_000;

export class ReadBudget {
  readonly #read: (url: string) => Promise<unknown>;
  readonly #nowMillis: () => number;
  #spentMillis = 0;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(read: (url: string) => Promise<unknown>, nowMillis: () => number) {
    this.#read = read;
    this.#nowMillis = nowMillis;
  }

  begin(): void {
    this.#spentMillis = 0;
  }

  /** Only the pool's own time counts, not that of a node. */
  async read(url: string): Promise<unknown> {
    const began = this.#nowMillis();
    if (this.#spentMillis > ROUND_MILLIS) throw new PoolSilence('the pool answers too slowly');
    if (began < this.#notBefore) throw new PoolSilence('the pool asked to wait');
    try {
      return await this.#read(url);
    } catch (error) {
      const wait = error instanceof PoolSilence ? error.retryAfterMillis : undefined;
      if (wait !== undefined) this.#notBefore = this.#nowMillis() + Math.min(wait, MAX_WAIT);
      throw error;
    } finally {
      this.#spentMillis += this.#nowMillis() - began;
    }
  }
}
