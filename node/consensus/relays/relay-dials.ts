/**
 * When a validator without a route requests a circuit to another without one, and from which relay: each in turn, with
 * growing delays.
 */
import { FIRST_ROUTE_RETRY_MILLIS, LAST_ROUTE_RETRY_MILLIS } from '../../validator/dial-plan.ts';

export type Wanted = {
  readonly name: string;
  /** How long its key must have been without a connection before a circuit is requested. */
  readonly afterMillis: number;
  /** The relays with its slot that this validator is connected to. */
  readonly relays: readonly string[];
};

export type RelayDial = { readonly name: string; readonly relay: string };

type Wish = { missingSince: number | undefined; notBefore: number; retryMillis: number; tries: number };

/** Per check, so that a relay does not get all requests at once. */
export const DIALS_AT_ONCE = 2;

export class RelayDials {
  readonly #wishes = new Map<string, Wish>();

  /** `listed`: all validators that the chain lists. Those not in `wanted` are connected. */
  next(wanted: readonly Wanted[], listed: ReadonlySet<string>, now: number): readonly RelayDial[] {
    for (const name of this.#wishes.keys()) if (!listed.has(name)) this.#wishes.delete(name);
    const missing = new Set(wanted.map(({ name }) => name));
    // The number of attempts is kept: if a relay breaks a circuit, the next relay gets its turn.
    for (const [name, wish] of this.#wishes)
      if (!missing.has(name))
        Object.assign(wish, { missingSince: undefined, notBefore: 0, retryMillis: FIRST_ROUTE_RETRY_MILLIS });
    const dials: RelayDial[] = [];
    for (const { name, afterMillis, relays } of wanted) {
      const wish = this.#wish(name);
      wish.missingSince ??= now;
      if (relays.length === 0 || now - wish.missingSince < afterMillis || now < wish.notBefore) continue;
      if (dials.length === DIALS_AT_ONCE) break;
      dials.push({ name, relay: relays[wish.tries++ % relays.length] as string });
      wish.notBefore = now + wish.retryMillis;
      wish.retryMillis = Math.min(LAST_ROUTE_RETRY_MILLIS, 2 * wish.retryMillis);
    }
    return dials;
  }

  #wish(name: string): Wish {
    const found = this.#wishes.get(name);
    if (found !== undefined) return found;
    const wish: Wish = {
      missingSince: undefined,
      notBefore: 0,
      retryMillis: FIRST_ROUTE_RETRY_MILLIS,
      tries: 0,
    };
    this.#wishes.set(name, wish);
    return wish;
  }
}
