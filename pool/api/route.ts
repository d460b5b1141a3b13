/** What a route of the pool's API is: its place, its words for the API page, how it reads a request, how it answers. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Address, parseAddress } from '../../protocol/address.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { SERVICES } from '../journal-record.ts';
import { ApiRefusal } from './api-error.ts';
import { PAGE_LIMIT, type Page } from './keyset.ts';

export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
};

export type Route = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With `:name` parts, below the API's prefix. */
  readonly path: string;
  readonly summary: string;
  readonly group: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: Readonly<Record<string, unknown>>;
  /** An example of the answer, shown on the API page. */
  readonly answer?: string;
  readonly operator?: boolean;
  /** Units of the client's allowance that are taken before anything is done; 1 where it is cheap. */
  readonly cost?: number;
  /** The cost is known only afterwards and may be high: a client has one such request under way at a time. */
  readonly isDear?: boolean;
  /** `charge` takes costs that are known only later, such as lists that had to be read. The length of an answer is charged anyway. */
  handle(request: FastifyRequest, reply: FastifyReply, charge: Charge): Promise<unknown>;
};

export type Charge = (units: number) => void;

/**
 * What work costs, in units of the allowance (50 a second for each client). One unit stands for about a millisecond of the main
 * thread, so that no client takes up more than a twentieth of it.
 */
export const COSTS = {
  /** A page that the database may have to look for. */
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

const text = (name: string, where: Parameter['in'], description: string, schema: object = {}): Parameter => ({
  name,
  in: where,
  description,
  schema: { type: 'string', ...schema },
});

export const PARAMETERS = {
  address: text('address', 'path', "the miner's address"),
  service: text('service', 'path', 'reward scheme', { enum: SERVICES }),
  serviceQuery: text('service', 'query', 'only this reward scheme', { enum: SERVICES }),
  state: text('state', 'query', 'only blocks in this state', {
    enum: ['found', 'accepted', 'registered', 'held', 'paid', 'expired', 'refused'],
  }),
  slice: { name: 'slice', in: 'path', description: 'number of the slice', schema: { type: 'integer', minimum: 0 } },
  blockId: text('id', 'path', 'block id, 96 hex characters', { pattern: '^[0-9a-f]{96}$' }),
  worker: text('worker', 'path', 'name of the worker, percent-encoded; - for the one without a name'),
  addressQuery: text('address', 'query', 'only this address'),
  finder: text('finder', 'query', 'only blocks that this address found'),
  hours: {
    name: 'hours',
    in: 'query',
    description: 'how far back',
    schema: { type: 'integer', minimum: 1, maximum: 2160, default: 24 },
  },
  cursor: text('cursor', 'query', 'next_cursor of the page before'),
  limit: {
    name: 'limit',
    in: 'query',
    description: 'rows of a page',
    schema: { type: 'integer', minimum: 1, maximum: PAGE_LIMIT.max, default: PAGE_LIMIT.default },
  },
} as const satisfies Record<string, Parameter>;

export const PAGE = [PARAMETERS.cursor, PARAMETERS.limit];

/** Longer than any valid value of a parameter. */
const MAX_VALUE = 256;

/** Text that the database and JSON both can hold. */
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_VALUE && !value.includes('\0') && value.isWellFormed();

/** No string anywhere in a body that the database could not hold. */
function isStorable(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return depth < 8 && Object.entries(value).every(([name, each]) => isStorable(name) && isStorable(each, depth + 1));
}

/**
 * Refuses what a route does not know, before anything is done for it: parameters it does not have, values that are no text, bodies
 * that cannot be kept. A misspelt parameter is an error, and junk parameters can neither bypass nor fill the answer cache.
 */
export function checkRequest(route: Route, request: FastifyRequest): void {
  const known = new Set((route.parameters ?? []).filter((each) => each.in === 'query').map((each) => each.name));
  for (const [name, value] of Object.entries(request.query as Record<string, unknown>)) {
    if (!known.has(name)) throw new ApiRefusal('bad_request', 'this route has no such parameter');
    if (!isText(value)) throw new ApiRefusal('bad_request', `${name} is not a value of this parameter`);
  }
  for (const [name, value] of Object.entries((request.params ?? {}) as Record<string, unknown>))
    if (!isText(value)) throw new ApiRefusal('bad_request', `${name} is not a value of this parameter`);
  if (!isStorable(request.body)) throw new ApiRefusal('bad_request', 'the body holds text that cannot be kept');
}

/** Names an answer by what it depends on: the route and its parameters, however they were written. */
export function answerKey(request: FastifyRequest): string {
  const query = Object.entries(request.query as Record<string, string>).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([request.routeOptions.url, request.params, query]);
}

const query = (request: FastifyRequest, name: string): string | undefined => {
  const value = (request.query as Record<string, unknown>)[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw new ApiRefusal('bad_request', `${name} is given more than once`);
  return value;
};

export const pathPart = (request: FastifyRequest, name: string): string =>
  (request.params as Record<string, string>)[name] ?? '';

export function numberOfRequest(
  request: FastifyRequest,
  name: string,
  limits: { readonly default: number; readonly min: number; readonly max: number },
): number {
  const word = query(request, name);
  const value = word === undefined ? limits.default : /^(0|[1-9]\d{0,14})$/.test(word) ? Number(word) : Number.NaN;
  if (!Number.isInteger(value) || value < limits.min || value > limits.max)
    throw new ApiRefusal('bad_request', `${name} is a whole number from ${limits.min} to ${limits.max}`);
  return value;
}

export const pageOfRequest = (request: FastifyRequest): Page => ({
  cursor: query(request, 'cursor'),
  limit: numberOfRequest(request, 'limit', { ...PAGE_LIMIT, min: 1 }),
});

/** Text as it came: an address that nobody has finds nothing. */
export function addressOfQuery(request: FastifyRequest, name: string): string | undefined {
  const value = query(request, name);
  if (value !== undefined && !/^[a-z0-9]{1,100}$/.test(value))
    throw new ApiRefusal('bad_request', `${name} is not an address`);
  return value;
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

export function choiceOfRequest<const C extends readonly string[]>(
  request: FastifyRequest,
  name: string,
  choices: C,
): C[number] | undefined {
  const value = query(request, name);
  if (value !== undefined && !choices.includes(value))
    throw new ApiRefusal('bad_request', `${name} is one of ${choices.join(', ')}`);
  return value;
}

export function serviceOfPath(request: FastifyRequest): number {
  const service = (SERVICES as readonly string[]).indexOf(pathPart(request, 'service'));
  if (service === -1) throw new ApiRefusal('not_found', `a service is one of ${SERVICES.join(', ')}`);
  return service;
}

export function serviceOfQuery(request: FastifyRequest): number | undefined {
  const name = choiceOfRequest(request, 'service', SERVICES);
  return name === undefined ? undefined : SERVICES.indexOf(name);
}

export function sliceOfQuery(request: FastifyRequest): number | undefined {
  if (query(request, 'slice') === undefined) return undefined;
  return numberOfRequest(request, 'slice', { default: 0, min: 0, max: 999_999_999 });
}

export function sliceOfPath(request: FastifyRequest): number {
  const word = pathPart(request, 'slice');
  if (!/^(0|[1-9]\d{0,8})$/.test(word)) throw new ApiRefusal('bad_request', 'a slice is named by its number');
  return Number(word);
}

/** A JSON body that is an object. */
export const bodyObject = (request: FastifyRequest): Record<string, unknown> => {
  const { body } = request;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new ApiRefusal('bad_request', 'the body is a JSON object');
  return body as Record<string, unknown>;
};
