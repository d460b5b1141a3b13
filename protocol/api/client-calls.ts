/**
 * One call of the typed client (specification: Errors, HTTP). A read is repeated after 429 and 503 when the server's wait has
 * passed, and after a lost connection; a submission is repeated after 429 and 503 only, never after a lost answer.
 */

import { type Bytes, toHex, utf8 } from '../bytes.ts';
import { CodedError } from '../coded-error.ts';
import { type ErrorDocument, errorDocument } from './documents.ts';
import { ROUTES, type RouteName, type RouteSpec } from './routes.ts';
import { check } from './schema.ts';
import { ANSWER_HEADERS } from './signed-answer.ts';

/** Codes raised by the client itself, beside those of API_ERRORS that a server sends. */
export const CLIENT_ERRORS = [
  'client_unreachable',
  'client_bad_answer',
  'client_outcome_unknown',
  'client_bad_input',
  'client_closed',
  'client_answer_unproven',
] as const;

/** The code is one of API_ERRORS or of CLIENT_ERRORS. A newer server may send one that this release does not know. */
export class ApiError extends CodedError<string> {
  override readonly name = 'ApiError';
  /** HTTP status, or 0 when there was no answer. */
  readonly status: number;
  readonly detail: ErrorDocument['error'] | undefined;

  constructor(code: string, status: number, message: string, detail?: ErrorDocument['error']) {
    super(code, message);
    this.status = status;
    this.detail = detail;
  }
}

export type FetchAnswer = {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  arrayBuffer(): Promise<ArrayBuffer>;
};
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: Uint8Array<ArrayBuffer>; signal: AbortSignal },
) => Promise<FetchAnswer>;

export type CallDependencies = {
  readonly fetch: Fetch;
  readonly sleep: (millis: number) => Promise<void>;
  /** Aborts when the time has passed; AbortSignal.timeout does. */
  readonly deadline: (millis: number) => AbortSignal;
  /** From 0 up to 1; spreads repeated calls. */
  readonly random: () => number;
};

export type CallOptions = {
  readonly baseUrl: string;
  /** Tries of one call, the first included. */
  readonly attempts: number;
  readonly timeoutMillis: number;
  /** No wait is longer, whatever a server asks for; the call then fails with the server's code. */
  readonly maxWaitMillis: number;
};

export const CALL_DEFAULTS = { attempts: 5, timeoutMillis: 30_000, maxWaitMillis: 60_000 } as const;

export type PreparedCall = {
  readonly route: RouteSpec;
  readonly target: string;
  readonly body: Uint8Array<ArrayBuffer> | undefined;
};
export type RawAnswer = {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly bytes: Bytes;
};

/** Sorts the arguments of a call into path, query and body, and refuses unknown ones. */
export function prepareCall(name: RouteName, input: Readonly<Record<string, unknown>>): PreparedCall {
  const route: RouteSpec = ROUTES[name];
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = route.path.replace(/\{(\w+)\}/g, (_, field: string) => {
    const value = rest.get(field);
    rest.delete(field);
    if (value === undefined) throw new ApiError('client_bad_input', 0, `${name} needs '${field}'`);
    return encodeURIComponent(String(value));
  });
  const query: string[] = [];
  for (const field of Object.keys(route.query.properties ?? {})) {
    const value = rest.get(field);
    if (value !== undefined) query.push(`${field}=${encodeURIComponent(String(value))}`);
    rest.delete(field);
  }
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`;
  if (route.body === undefined) {
    for (const field of rest.keys()) throw new ApiError('client_bad_input', 0, `${name} has no field '${field}'`);
    return { route, target, body: undefined };
  }
  const body = Object.fromEntries(rest);
  const problem = check(route.body, body);
  if (problem !== undefined) throw new ApiError('client_bad_input', 0, `${problem.field} ${problem.problem}`);
  return { route, target, body: utf8(JSON.stringify(body)) };
}

async function once(
  options: CallOptions,
  dependencies: CallDependencies,
  call: PreparedCall,
  nonce: Bytes | undefined,
): Promise<RawAnswer> {
  const headers: Record<string, string> = { accept: 'application/json' };
  if (call.body !== undefined) headers['content-type'] = 'application/json';
  if (nonce !== undefined) headers[ANSWER_HEADERS.nonce] = toHex(nonce);
  const answer = await dependencies.fetch(`${options.baseUrl}${call.target}`, {
    method: call.route.method,
    headers,
    ...(call.body === undefined ? {} : { body: call.body }),
    signal: dependencies.deadline(options.timeoutMillis),
  });
  return {
    status: answer.status,
    header: (name) => answer.headers.get(name),
    bytes: new Uint8Array(await answer.arrayBuffer()),
  };
}

const decoder = new TextDecoder('utf-8', { fatal: true });

export function parseAnswer(bytes: Bytes): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new ApiError('client_bad_answer', 0, 'the answer is not JSON');
  }
}

function errorOf(answer: RawAnswer): { error: ApiError; waitMillis: number | undefined } {
  let document: unknown;
  try {
    document = parseAnswer(answer.bytes);
  } catch {
    document = undefined;
  }
  if (check(errorDocument, document, '', { unknownFields: 'ignore' }) !== undefined)
    return {
      error: new ApiError('client_bad_answer', answer.status, `status ${answer.status} without an error document`),
      waitMillis: undefined,
    };
  const { error, retry_after_millis: waitMillis } = document as ErrorDocument;
  return { error: new ApiError(error.code, answer.status, error.message, error), waitMillis };
}

/** 429 and 503 mean that nothing was done: reads and submissions may both be repeated. */
const mayRepeat = (status: number): boolean => status === 429 || status === 503;

/**
 * 0.5 s, 1 s, 2 s ... up to 15 s, each spread by half, so that clients of a restarted server do not all reconnect at
 * once.
 */
export const backoffMillis = (attempt: number, random: () => number): number =>
  Math.min(15_000, 500 * 2 ** Math.min(attempt, 10)) * (0.5 + random() / 2);

/** Check of a pinned client on every relevant answer, refusals too. `sent` is the nonce of the request. */
export type Proof = { nonce(): Bytes; prove(call: PreparedCall, answer: RawAnswer, sent: Bytes): Promise<void> };

/** Answers that only report a busy or unavailable node need no signature. */
const isStatement = (status: number): boolean => status < 500 && status !== 429;

/** Runs a call until it has an answer of status 2xx, or a reason why it cannot have one. */
export async function performCall(
  options: CallOptions,
  dependencies: CallDependencies,
  call: PreparedCall,
  proof?: Proof,
): Promise<RawAnswer> {
  for (let attempt = 0; ; attempt++) {
    const last = attempt + 1 >= options.attempts;
    const sent = proof?.nonce();
    let answer: RawAnswer;
    try {
      answer = await once(options, dependencies, call, sent);
    } catch (cause) {
      const text = cause instanceof Error ? cause.message : String(cause);
      if (!call.route.read) throw new ApiError('client_outcome_unknown', 0, `the answer was lost: ${text}`);
      if (last) throw new ApiError('client_unreachable', 0, `no answer from ${options.baseUrl}: ${text}`);
      await dependencies.sleep(backoffMillis(attempt, dependencies.random));
      continue;
    }
    if (sent !== undefined && isStatement(answer.status)) await proof?.prove(call, answer, sent);
    if (answer.status >= 200 && answer.status < 300) return answer;
    const { error, waitMillis } = errorOf(answer);
    // A proxy's 5xx may hide an answer that the node gave: for a submission that is a lost answer.
    if (!call.route.read && answer.status >= 500 && answer.status !== 503)
      throw new ApiError('client_outcome_unknown', answer.status, error.message);
    const wait = waitMillis ?? backoffMillis(attempt, dependencies.random);
    if (last || !mayRepeat(answer.status) || wait > options.maxWaitMillis) throw error;
    await dependencies.sleep(wait);
  }
}
