/**
 * A set to draw from at random: adding, removing and every draw take the same time however many members there are. The order of the members has
 * no meaning, and draws change it.
 */
export class DrawSet<T> {
  readonly #members: T[] = [];
  readonly #indexes = new Map<T, number>();

  get size(): number {
    return this.#members.length;
  }

  add(member: T): void {
    if (this.#indexes.has(member)) return;
    this.#indexes.set(member, this.#members.length);
    this.#members.push(member);
  }

  delete(member: T): boolean {
    const index = this.#indexes.get(member);
    if (index === undefined) return false;
    const last = this.#members.pop() as T;
    this.#indexes.delete(member);
    if (index < this.#members.length) this.#put(index, last);
    return true;
  }

  #put(index: number, member: T): void {
    this.#members[index] = member;
    this.#indexes.set(member, index);
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#members[Symbol.iterator]();
  }

  /** Draws without replacement, until the set is changed. */
  drawing(): Drawing<T> {
    let drawn = 0;
    return {
      left: () => this.#members.length - drawn,
      take: (k) => {
        const index = drawn + k;
        const member = this.#members[index] as T;
        this.#put(index, this.#members[drawn] as T);
        this.#put(drawn++, member);
        return member;
      },
    };
  }
}

export type Drawing<T> = {
  left(): number;
  /** The k-th of those that are left. */
  take(k: number): T;
};
