/**
 * The order in which requests are begun. In each turn of the event loop every client with waiting requests begins one,
 * as far as BEGUN_AT_ONCE goes; who has begun one goes to the end of the row. A client that sends as many as it can
 * waits for its own requests, and others hardly for them. Nothing is refused.
 */

/** Requests that are begun in one turn of the event loop: other work of the thread waits for them. */
export const BEGUN_AT_ONCE = 16;

type Begin = () => void;

export class ClientTurns {
  readonly #waiting = new Map<string, Set<Begin>>();
  #next: NodeJS.Immediate | undefined;

  get clients(): number {
    return this.#waiting.size;
  }

  /** Returns how the client takes it back before its turn. */
  add(client: string, begin: Begin): () => void {
    const own = this.#waiting.get(client) ?? new Set();
    this.#waiting.set(client, own.add(begin));
    this.#next ??= setImmediate(() => this.#run());
    return () => {
      if (own.delete(begin) && own.size === 0) this.#waiting.delete(client);
    };
  }

  #run(): void {
    this.#next = undefined;
    for (let left = Math.min(this.#waiting.size, BEGUN_AT_ONCE); left > 0; left--) this.#beginOne();
    if (this.#waiting.size > 0) this.#next ??= setImmediate(() => this.#run());
  }

  #beginOne(): void {
    for (const [client, own] of this.#waiting)
      for (const begin of own) {
        own.delete(begin);
        this.#waiting.delete(client);
        if (own.size > 0) this.#waiting.set(client, own);
        begin();
        return;
      }
  }
}
