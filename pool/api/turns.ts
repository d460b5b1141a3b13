/** A lock per name with a bounded queue: `holders` at a time (default one), at most `most` waiting. */
export class Turns {
  readonly #most: number;
  readonly #holders: number;
  readonly #places = new Map<string, { held: number; readonly waiting: (() => void)[] }>();

  constructor(options: { readonly most: number; readonly holders?: number }) {
    this.#most = options.most;
    this.#holders = options.holders ?? 1;
  }

  /** Resolves with a release function once the name is held; undefined when too many wait. */
  async take(name: string): Promise<(() => void) | undefined> {
    const place = this.#places.get(name) ?? { held: 0, waiting: [] };
    if (place.held < this.#holders) {
      place.held++;
      this.#places.set(name, place);
    } else if (place.waiting.length >= this.#most) return undefined;
    else await new Promise<void>((resolve) => place.waiting.push(resolve));
    return () => {
      const next = place.waiting.shift();
      if (next !== undefined) next();
      else if (--place.held === 0) this.#places.delete(name);
    };
  }
}
