/** A lock per name with a bounded queue: one holder at a time, at most `most` waiting. */
export class Turns {
  readonly #most: number;
  /** Waiting callers by name; a name without an entry is not held. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(options: { readonly most: number }) {
    this.#most = options.most;
  }

  /** Resolves with a release function once the name is held; undefined when too many wait. */
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
