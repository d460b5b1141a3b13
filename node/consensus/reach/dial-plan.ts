/**
 * Selects the validators that a validator connects to by their registered routes (specification: Validator
 * reachability). Of two with a route the one with the lower identifier dials, and the other dials back if no connection
 * arrived; one without a route dials all that have one.
 */
import { type Bytes, compareBytes, equalBytes } from '../../../protocol/bytes.ts';
import type { ListenAddress } from '../../../runtime/command-line/command-line.ts';

export type Reachable = {
  readonly id: Bytes;
  /** The consensus key that must be proven at its routes. */
  readonly publicKey: Bytes;
  readonly routes: readonly ListenAddress[];
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
