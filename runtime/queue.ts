/** First in, first out. However many wait, each leaves at the same cost: an array moves all others where they are tens of thousands. */
export class Queue<T> {
  #entries: T[] = [];
  #next = 0;

  get length(): number {
    return this.#entries.length - this.#next;
  }

  push(entry: T): void {
    this.#entries.push(entry);
  }

  shift(): T | undefined {
    const entry = this.#entries[this.#next++];
    // Those that wait are moved when as many have left.
    if (this.#next >= this.length) {
      this.#entries = this.#entries.slice(this.#next);
      this.#next = 0;
    }
    return entry;
  }
}
