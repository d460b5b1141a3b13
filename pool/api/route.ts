/** A route of the pool's API: path, description for the API page, schemas of requests and answers, and handler. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Address, parseAddress } from '../../protocol/address.ts';
import {
  check,
  described,
  type Infer,
  integer,
  object,
  optional,
  type Schema,
  text,
  typedFields,
} from '../../protocol/api/schema.ts';
import { identifier } from '../../protocol/api/values.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { ApiRefusal } from './api-error.ts';
import { type ServiceName, service } from './documents.ts';
import { PAGE_LIMIT, type Page } from './keyset.ts';
import { CHART_HOURS } from './public/chart-view.ts';

export type Input<P = unknown, Q = unknown, B = unknown> = { readonly params: P; readonly query: Q; readonly body: B };

export type Charge = (units: number) => void;

export type Exchange = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** The client's key in the rate limiter. */
  readonly client: string;
  /**
   * Charges costs that are known only later, such as lists that had to be read. The length of an answer is charged
   * automatically.
   */
  readonly charge: Charge;
};

export type Handler<I, A> = (input: I, exchange: Exchange) => Promise<A>;

type Place = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With `:name` parts, below the API's prefix. */
  readonly path: string;
  readonly summary: string;
  /** Units of the client's allowance charged in advance; 1 for a cheap route. */
  readonly cost?: number;
  /** The cost is known only afterwards and may be high: such requests of a client run one at a time. */
  readonly isDear?: boolean;
  /** For how many milliseconds an answer may be cached, here and by browsers and proxies. Not cached by default. */
  readonly keep?: number | 'forever';
  /** Of an answer that is text and not JSON; such a route has `keep`. */
  readonly media?: string;
};

/** `operator`: behind the token. */
type Shelf = { readonly group: string; readonly operator?: boolean };

export type Route = Place &
  Shelf & {
    readonly params: Schema<unknown>;
    readonly query: Schema<unknown>;
    readonly body: Schema<unknown> | undefined;
    readonly answer: Schema<unknown>;
    readonly handle: Handler<Input, unknown>;
  };

const nothing = object({});
export type Nothing = Infer<typeof nothing>;

/** A route whose handler's types follow from its schemas. */
export type Definition<A, P = Nothing, Q = Nothing, B = undefined> = Place & {
  readonly params?: Schema<P>;
  readonly query?: Schema<Q>;
  readonly body?: Schema<B>;
  readonly answer: Schema<A>;
  readonly handle: Handler<Input<P, Q, B>, A>;
};

export const route = <A, P = Nothing, Q = Nothing, B = undefined>(
  definition: Definition<A, P, Q, B> & Shelf,
): Route => ({
  ...definition,
  params: definition.params ?? nothing,
  query: definition.query ?? nothing,
  body: definition.body,
  handle: definition.handle as Handler<Input, unknown>,
});

/**
 * Costs in units of the allowance (50 a second for each client). One unit is about a millisecond of the main thread, so
 * that no client uses more than a twentieth of it.
 */
export const COSTS = {
  /** A page that may need a database search. */
  search: 4,
  chart: 4,
  /** A signature that is verified. */
  signature: 16,
  proof: 8,
  /** Bytes of an answer, leaves of a tree that had to be built, and packed rows that had to be read, for one unit. */
  bytes: 8 * 1024,
  leaves: 100,
  rows: 10_000,
} as const;

/** Not checked: an unknown address finds nothing. */
const addressText = text({ pattern: '^[a-z0-9]{1,100}$' });

/** Fields used in requests. */
export const FIELDS = {
  address: text({ description: "the miner's address" }),
  service: described(service, 'reward scheme'),
  serviceQuery: optional(described(service, 'only this reward scheme')),
  slice: integer({ maximum: 999_999_999, description: 'number of the slice' }),
  blockId: described(identifier, 'block id, 96 hex characters'),
  worker: text({ description: 'name of the worker, percent-encoded; - for the one without a name' }),
  addressQuery: optional(described(addressText, 'only this address')),
  finder: optional(described(addressText, 'only blocks that this address found')),
  hours: optional(
    integer({ minimum: 1, maximum: CHART_HOURS.max, default: CHART_HOURS.default, description: 'how far back' }),
  ),
  cursor: optional(text({ description: 'next_cursor of the page before' })),
} as const;

export const PAGE_FIELDS = {
  cursor: FIELDS.cursor,
  limit: optional(
    integer({ minimum: 1, maximum: PAGE_LIMIT.max, default: PAGE_LIMIT.default, description: 'rows of a page' }),
  ),
} as const;

/** Common requests: a page, and one slice. */
export const paged = object(PAGE_FIELDS);
export const ofSlice = object({ service: FIELDS.service, slice: FIELDS.slice });

export const pageOfQuery = ({
  cursor,
  limit,
}: {
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}): Page => ({
  cursor,
  limit: limit ?? PAGE_LIMIT.default,
});

export const serviceNumber = (name: ServiceName): number => SERVICES.indexOf(name);

/** Longer than any valid value of a parameter. */
const MAX_VALUE = 256;

/** Text that both the database and JSON can hold. */
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_VALUE && !value.includes('\0') && value.isWellFormed();

/** Whether all strings in a body can be stored in the database. */
function isStorable(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return depth < 8 && Object.entries(value).every(([name, each]) => isStorable(name) && isStorable(each, depth + 1));
}

function readFields(schema: Schema<unknown>, given: unknown): unknown {
  const fields = (given ?? {}) as Record<string, unknown>;
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(schema.properties ?? {}, name))
      throw new ApiRefusal('bad_request', 'this route has no such parameter');
    if (!isText(value)) throw new ApiRefusal('bad_request', `${name} is not a value of this parameter`);
  }
  const values = typedFields(schema, fields as Record<string, string>);
  refuse(schema, values);
  return values;
}

export const notJson = (): ApiRefusal =>
  new ApiRefusal(
    'bad_request',
    'the body must be JSON and declared as such: send the header content-type: application/json',
  );

function refuse(schema: Schema<unknown>, value: unknown): void {
  const problem = check(schema, value);
  if (problem !== undefined) throw new ApiRefusal('bad_request', `${problem.field} ${problem.problem}`);
}

/**
 * Parses a request into the types of its route. Unknown parameters are refused first: a misspelt parameter is an error,
 * and junk parameters can neither bypass nor fill the answer cache.
 */
export function readRequest(route: Route, request: Pick<FastifyRequest, 'params' | 'query' | 'body'>): Input {
  const query = readFields(route.query, request.query);
  const params = readFields(route.params, request.params);
  if (!isStorable(request.body)) throw new ApiRefusal('bad_request', 'the body contains text that cannot be stored');
  if (route.body === undefined) return { params, query, body: undefined };
  // What curl sends without a header is declared as a form.
  if (typeof request.body === 'string') throw notJson();
  const body = request.body ?? {};
  refuse(route.body, body);
  return { params, query, body };
}

/** The cache key of an answer: the route and its normalised parameters. */
export function answerKey(request: FastifyRequest): string {
  const query = Object.entries(request.query as Record<string, string>).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([request.routeOptions.url, request.params, query]);
}

/** An address of the pool's network, whether it has mined here or not. */
export function readMinerAddress(text: string, network: NetworkName): Address {
  try {
    return parseAddress(text, network);
  } catch (error) {
    if (error instanceof ProtocolError) throw new ApiRefusal('bad_request', error.message);
    throw error;
  }
}

/** A route of the operator: under `/operator`, behind the token. */
export const operator = <A, P = Nothing, Q = Nothing, B = undefined>(definition: Definition<A, P, Q, B>): Route =>
  route({ ...definition, path: `/operator${definition.path}`, group: 'Operator', operator: true });
