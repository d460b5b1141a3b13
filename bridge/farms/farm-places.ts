/**
 * Rigs that farms were admitted with. A farm takes one place among the connections; the names of its rigs take memory, so there
 * is a bound of them for the client's address and for the thread. Where all are taken, farms that have found nothing for a while
 * give theirs to one that comes: else a few idle strangers could keep all others out.
 */
export const RIGS_OF_ADDRESS = 65_536;
const RIGS_OF_THREAD = 1_048_576;
/** A farm that works has a share every ten seconds, or more. */
const IDLE_MILLIS = 120_000;

type Held = { readonly client: string; readonly rigs: number; workedMillis: number };
/** The one without a share for longest is the first. */
type Farms<F> = Map<F, Held>;

export class FarmPlaces<F> {
  readonly #farms: Farms<F> = new Map();
  readonly #clients = new Map<string, { rigs: number; readonly farms: Farms<F> }>();
  #all = 0;

  /** How many of those asked for a farm of this client gets, and the farms that have to end for it. */
  take(farm: F, client: string, asked: number, nowMillis: number): { readonly rigs: number; readonly idle: F[] } {
    const idle: F[] = [];
    const own = () => this.#clients.get(client);
    const left = () => RIGS_OF_ADDRESS - (own()?.rigs ?? 0);
    const endIdle = (of: Farms<F>, hasRoom: () => boolean): void => {
      for (const [other, { workedMillis }] of of) {
        if (hasRoom() || nowMillis - workedMillis < IDLE_MILLIS) return;
        this.release(other);
        idle.push(other);
      }
    };
    endIdle(own()?.farms ?? new Map(), () => left() >= asked);
    endIdle(this.#farms, () => RIGS_OF_THREAD - this.#all >= Math.min(asked, left()));
    const rigs = Math.max(0, Math.min(asked, left(), RIGS_OF_THREAD - this.#all));
    if (rigs > 0) this.#hold(farm, { client, rigs, workedMillis: nowMillis });
    return { rigs, idle };
  }

  #hold(farm: F, held: Held): void {
    const own = this.#clients.get(held.client) ?? { rigs: 0, farms: new Map() };
    this.#clients.set(held.client, own);
    own.rigs += held.rigs;
    this.#all += held.rigs;
    own.farms.set(farm, held);
    this.#farms.set(farm, held);
  }

  /** It had a share accepted. */
  worked(farm: F, nowMillis: number): void {
    const held = this.#farms.get(farm);
    if (held === undefined) return;
    held.workedMillis = nowMillis;
    for (const farms of [this.#farms, this.#clients.get(held.client)?.farms]) {
      farms?.delete(farm);
      farms?.set(farm, held);
    }
  }

  release(farm: F): void {
    const held = this.#farms.get(farm);
    const own = held === undefined ? undefined : this.#clients.get(held.client);
    if (held === undefined || own === undefined) return;
    this.#farms.delete(farm);
    own.farms.delete(farm);
    own.rigs -= held.rigs;
    this.#all -= held.rigs;
    if (own.farms.size === 0) this.#clients.delete(held.client);
  }
}
