/**
 * Selects the validators that a validator connects to by their registered routes (specification: Validator
 * reachability). Of two with a route the one with the lower identifier dials, and the other dials back if no connection
 * arrived; one without a route dials all that have one.
 */
import { type Bytes, compareBytes, equalBytes } from '../../protocol/bytes.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';

export type Reachable = {
  readonly id: Bytes;
  /** The consensus key that must be proven at its routes. */
  readonly publicKey: Bytes;
  readonly routes: readonly ListenAddress[];
};

/** A validator as the chain lists it: of the committee, or perhaps of the next one. */
export type Listed = Reachable & {
  readonly overlayKey: Bytes;
  /** The key of the next epoch, if that is near. */
  readonly nextOverlayKey?: Bytes | undefined;
};

/** The chain's data about this validator and the others. */
export type Listing = {
  readonly own: Pick<Reachable, 'id' | 'routes'>;
  /** A validator with another key in the next epoch is listed twice: first its current entry, then the next. */
  readonly validators: readonly Listed[];
  /** Signs with the registered overlay key; missing if this node has another one, or none. */
  readonly sign?: ((message: Bytes) => Bytes) | undefined;
};

export type DialOrder = {
  readonly validator: Reachable;
  /** How long its key must have been without a connection before it is dialled. */
  readonly afterMillis: number;
};

/** Neighbours named by the operator, and connections dialled by the other side at the same time, come first. */
export const DIAL_AFTER_MILLIS = 1_000;
/**
 * Together with the time until the next check it is less than the shortest listening time (rule 21): a validator that
 * has to dial back hears from those that are ahead before it signs.
 */
export const DIAL_BACK_AFTER_MILLIS = 1_500;

/** How soon a route that failed is dialled again: anybody with a bond may register any address. */
export const FIRST_ROUTE_RETRY_MILLIS = 2_500;
export const LAST_ROUTE_RETRY_MILLIS = 60_000;

/**
 * Of two with a route, or two without, the lower identifier dials first. Of one without a route and one with, only the
 * one without dials.
 */
export function dialAfter(own: Pick<Reachable, 'id' | 'routes'>, other: Pick<Reachable, 'id' | 'routes'>): number {
  const isFirst = (own.routes.length === 0 && other.routes.length > 0) || compareBytes(own.id, other.id) < 0;
  return isFirst ? DIAL_AFTER_MILLIS : DIAL_BACK_AFTER_MILLIS;
}

/** `own` has routes if this validator registered some. */
export function dialPlan(own: Pick<Reachable, 'id' | 'routes'>, validators: readonly Reachable[]): DialOrder[] {
  return validators
    .filter(({ id, routes }) => !equalBytes(own.id, id) && routes.length > 0)
    .map((validator) => ({ validator, afterMillis: dialAfter(own, validator) }));
}
