/** A map of at most `limit` entries: one more removes the entry that was set, or last used, longest ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #limit: number;
  /**
   * Iterates over the entries from the oldest on while the map is full. It is reused: a new iterator would step over
   * all entries removed since the map was last compacted, thousands in a large map. It is not kept for long either: an
   * iterator retains removed entries.
   */
  #oldest: MapIterator<K> | undefined;
  #removed = 0;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override set(key: K, value: V): this {
    if (this.size >= this.#limit && !this.has(key)) {
      this.#oldest ??= this.keys();
      let oldest = this.#oldest.next();
      if (oldest.done === true) {
        this.#oldest = this.keys();
        oldest = this.#oldest.next();
      }
      if (oldest.done !== true) this.delete(oldest.value);
    }
    return super.set(key, value);
  }

  override delete(key: K): boolean {
    if (++this.#removed > this.#limit) {
      this.#removed = 0;
      this.#oldest = undefined;
    }
    return super.delete(key);
  }

  override clear(): void {
    this.#oldest = undefined;
    super.clear();
  }

  /** As get(), and the entry becomes the newest. */
  use(key: K): V | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    this.delete(key);
    super.set(key, value);
    return value;
  }
}
