/**
 * The connections of a door that wait for their client: to send a request or the rest of it, or to take an answer. When
 * all places are taken, the one that has waited longest is closed, so that no client can block others by holding
 * connections.
 */
export class Waiting<T extends { readonly isNear: boolean }> {
  readonly #near = new Set<T>();
  readonly #far = new Set<T>();

  /** Begins to wait now: behind all others. */
  add(one: T): void {
    (one.isNear ? this.#near : this.#far).add(one);
  }

  delete(one: T): void {
    (one.isNear ? this.#near : this.#far).delete(one);
  }

  /** The connection that makes room for a new one. Other machines never displace a program of this machine. */
  longest(forNear: boolean): T | undefined {
    const [far] = this.#far;
    if (far !== undefined || !forNear) return far;
    const [near] = this.#near;
    return near;
  }
}
