/** A map of at most `limit` entries: one more removes the entry that was set, or last used, longest ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #limit: number;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override set(key: K, value: V): this {
    if (this.size >= this.#limit && !this.has(key)) {
      const oldest = this.keys().next();
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
