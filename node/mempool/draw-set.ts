/**
 * A set to draw from at random: adding, removing and every draw take the same time however many members there are. The order of the members has
 * no meaning, and draws change it.
 */
export class DrawSet<T> {
  readonly #members: T[] = [];
  readonly #places = new Map<T, number>();

  get size(): number {
    return this.#members.length;
  }

  add(member: T): void {
    if (this.#places.has(member)) return;
    this.#places.set(member, this.#members.length);
    this.#members.push(member);
  }

  delete(member: T): boolean {
    const place = this.#places.get(member);
    if (place === undefined) return false;
    const last = this.#members.pop() as T;
    this.#places.delete(member);
    if (place < this.#members.length) this.#put(place, last);
    return true;
  }

  #put(place: number, member: T): void {
    this.#members[place] = member;
    this.#places.set(member, place);
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
        const place = drawn + k;
        const member = this.#members[place] as T;
        this.#put(place, this.#members[drawn] as T);
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
