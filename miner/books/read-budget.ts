/**
 * Time limit for all answers of a pool in one round of a watch. Each answer has its own limit, but a pool chooses the
 * number of pages: with slow pages a round would last for hours, and the user would not learn that the books are not
 * checked.
 */
const ROUND_MILLIS = 10 * 60_000;

export class ReadBudget {
  readonly #read: (url: string) => Promise<unknown>;
  readonly #nowMillis: () => number;
  #spentMillis = 0;

  constructor(read: (url: string) => Promise<unknown>, nowMillis: () => number) {
    this.#read = read;
    this.#nowMillis = nowMillis;
  }

  begin(): void {
    this.#spentMillis = 0;
  }

  /** Only the pool's own time counts, not that of a node. */
  async read(url: string): Promise<unknown> {
    if (this.#spentMillis > ROUND_MILLIS) throw new Error('the pool answers too slowly');
    const began = this.#nowMillis();
    try {
      return await this.#read(url);
    } finally {
      this.#spentMillis += this.#nowMillis() - began;
    }
  }
}
