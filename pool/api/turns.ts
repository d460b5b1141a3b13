/** One at a time for each name; others of the same name wait for their turn, at most so many of them. */
export class Turns {
  readonly #most: number;
  /** Who waits, by name; a name without an entry has nothing under way. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(options: { readonly most: number }) {
    this.#most = options.most;
  }

  /** Resolves when it is its turn, with what ends the turn; undefined when too many wait. */
  async take(name: string): Promise<(() => void) | undefined> {
    const waiting = this.#waiting.get(name);
    if (waiting === undefined) this.#waiting.set(name, []);
    else if (waiting.length >= this.#most) return undefined;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    return () => {
      const next = this.#waiting.get(name)?.shift();
      if (next === undefined) this.#waiting.delete(name);
      else next();
    };
  }
}
