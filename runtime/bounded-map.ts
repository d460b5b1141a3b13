/** A map of at most `limit` entries: one more removes the entry that was set, or last used, longest ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #limit: number;
  /**
   * Goes through the entries from the oldest on and is never begun anew while there are any: an iterator that is begun anew steps over everything that was
   * removed since the map was last made smaller, thousands of entries in a large map.
   */
  #oldest = this.keys();

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override set(key: K, value: V): this {
    if (this.size >= this.#limit && !this.has(key)) {
      let oldest = this.#oldest.next();
      if (oldest.done === true) {
        this.#oldest = this.keys();
        oldest = this.#oldest.next();
      }
      if (oldest.done !== true) this.delete(oldest.value);
    }
    return super.set(key, value);
  }

  /** As get(), and the entry counts as the youngest. */
  use(key: K): V | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    this.delete(key);
    super.set(key, value);
    return value;
  }
}
