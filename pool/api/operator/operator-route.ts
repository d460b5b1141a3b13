/** A route of the operator: under `/operator`, behind the token. */
import { type Definition, type Nothing, type Route, route } from '../route.ts';

export const operator = <A, P = Nothing, Q = Nothing, B = undefined>(definition: Definition<A, P, Q, B>): Route =>
  route({ ...definition, path: `/operator${definition.path}`, group: 'Operator', operator: true });
