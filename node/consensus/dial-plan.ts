/**
 * Which validators a validator connects to by the routes that they registered (specification: Validator reachability). Of two with a route the one with the lower identifier dials, the other dials back
 * where nothing arrived; one without a route dials all that have one.
 */
import { type Bytes, compareBytes, equalBytes } from '../../protocol/bytes.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';

export type Reachable = {
  readonly id: Bytes;
  /** The consensus key that must be proven at its routes. */
  readonly publicKey: Bytes;
  readonly routes: readonly ListenAddress[];
};

export type DialOrder = {
  readonly validator: Reachable;
  /** How long nobody with its key has been connected before it is dialled. */
  readonly afterMillis: number;
};

/** Neighbours that the operator named, and those who dial at the same time, come first. */
export const DIAL_AFTER_MILLIS = 1_000;
/** With the time until the next look it is less than the shortest time of listening (rule 21): one that has to dial back hears those that are further before it signs. */
export const DIAL_BACK_AFTER_MILLIS = 1_500;

/** Between two of the same kind, with a route or without, the lower identifier is first. Without a route against one with: it alone dials. */
export function dialAfter(own: Pick<Reachable, 'id' | 'routes'>, other: Pick<Reachable, 'id' | 'routes'>): number {
  const isFirst = (own.routes.length === 0 && other.routes.length > 0) || compareBytes(own.id, other.id) < 0;
  return isFirst ? DIAL_AFTER_MILLIS : DIAL_BACK_AFTER_MILLIS;
}

/** `own` has routes where this validator registered some. */
export function dialPlan(own: Pick<Reachable, 'id' | 'routes'>, validators: readonly Reachable[]): DialOrder[] {
  return validators
    .filter(({ id, routes }) => !equalBytes(own.id, id) && routes.length > 0)
    .map((validator) => ({ validator, afterMillis: dialAfter(own, validator) }));
}
