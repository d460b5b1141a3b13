/**
 * Rigs that farms were admitted with. A farm takes one place among the connections; the names of its rigs take memory, so there
 * is a bound of them for the client's address and for the thread.
 */
export const RIGS_OF_ADDRESS = 65_536;
const RIGS_OF_THREAD = 1_048_576;

export class FarmPlaces {
  /** By client. */
  readonly #taken = new Map<string, number>();
  #all = 0;

  /** How many of those asked for a farm of this client gets. */
  take(client: string, asked: number): number {
    const taken = this.#taken.get(client) ?? 0;
    const rigs = Math.max(0, Math.min(asked, RIGS_OF_ADDRESS - taken, RIGS_OF_THREAD - this.#all));
    this.#set(client, taken + rigs);
    return rigs;
  }

  release(client: string, rigs: number): void {
    this.#set(client, (this.#taken.get(client) ?? 0) - rigs);
  }

  #set(client: string, rigs: number): void {
    this.#all += rigs - (this.#taken.get(client) ?? 0);
    if (rigs > 0) this.#taken.set(client, rigs);
    else this.#taken.delete(client);
  }
}
