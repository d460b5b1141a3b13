/**
 * Rigs that farms were admitted with. A farm takes one place among the connections; the names of its rigs take memory, so there
 * is a bound of them for an address and for the thread.
 */
export const RIGS_OF_ADDRESS = 65_536;
const RIGS_OF_THREAD = 1_048_576;

export class FarmPlaces<T extends { readonly client: string }> {
  readonly #taken = new Map<T, number>();
  readonly #ofAddress = new Map<string, number>();
  #all = 0;

  /** How many of those asked for it gets. */
  take(farm: T, asked: number): number {
    const here = this.#ofAddress.get(farm.client) ?? 0;
    const rigs = Math.max(0, Math.min(asked, RIGS_OF_ADDRESS - here, RIGS_OF_THREAD - this.#all));
    if (rigs > 0) this.#set(farm, rigs, here + rigs);
    return rigs;
  }

  release(farm: T): void {
    const rigs = this.#taken.get(farm);
    if (rigs === undefined) return;
    this.#set(farm, -rigs, (this.#ofAddress.get(farm.client) ?? 0) - rigs);
    this.#taken.delete(farm);
  }

  #set(farm: T, change: number, here: number): void {
    this.#all += change;
    this.#taken.set(farm, change);
    if (here > 0) this.#ofAddress.set(farm.client, here);
    else this.#ofAddress.delete(farm.client);
  }
}
