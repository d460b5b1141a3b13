/**
 * The typed client of the public API, for Node and browsers alike: a method per route, submissions that are never sent
 * twice after a lost answer, answers optionally checked against a pinned identity, and the streams of client-live.ts and client-events.ts.
 */
import { type Bytes, toHex } from '../bytes.ts';
import { decodeTransaction, transactionId } from '../transactions/transaction.ts';
import {
  ApiError,
  CALL_DEFAULTS,
  type CallDependencies,
  type CallOptions,
  type Proof,
  parseAnswer,
  performCall,
  prepareCall,
} from './client-calls.ts';
import { API_VERSION, type SubmissionResult } from './documents.ts';
import { type Pin, PinnedNode } from './pinned-node.ts';
import { ROUTE_NAMES, ROUTES, type RouteAnswer, type RouteInput, type RouteName } from './routes.ts';
import { check } from './schema.ts';
import { NONCE_BYTES, type VerifySignature } from './signed-answer.ts';

export { ApiError } from './client-calls.ts';

type Calls = {
  readonly [N in RouteName as N extends 'submitTransaction' ? never : N]: Record<never, never> extends RouteInput<N>
    ? (input?: RouteInput<N>) => Promise<RouteAnswer<N>>
    : (input: RouteInput<N>) => Promise<RouteAnswer<N>>;
};

export type ApiClient = Calls & {
  readonly baseUrl: string;
  /**
   * Sends a signed transaction. When the answer is lost it asks for the status instead; if the server does not know the
   * transaction either, the outcome stays unknown (`client_outcome_unknown`), and the caller has to ask again later.
   */
  submitTransaction(wire: Bytes): Promise<SubmissionResult>;
};

export type ClientOptions = {
  /** Such as http://127.0.0.1:28701, without a slash at the end. */
  readonly baseUrl: string;
  readonly attempts?: number;
  readonly timeoutMillis?: number;
  readonly maxWaitMillis?: number;
  /** With a pin every answer, refusals too, must be signed by such an identity for that chain, or the call fails. */
  readonly pin?: Pin | undefined;
};

export type ClientDependencies = CallDependencies & {
  /** Fills a nonce with random bytes; needed with a pin. */
  readonly randomBytes?: (length: number) => Bytes;
  readonly verify?: VerifySignature;
};

/** `timeoutMillis` covers one try; fetch aborts when it passes. */
export function createApiClient(options: ClientOptions, dependencies: ClientDependencies): ApiClient {
  const settings: CallOptions = { ...CALL_DEFAULTS, ...options, baseUrl: options.baseUrl.replace(/\/+$/, '') };
  const { pin } = options;
  const { randomBytes } = dependencies;
  if (pin !== undefined && randomBytes === undefined)
    throw new ApiError('client_bad_input', 0, 'a pinned client needs a source of random bytes');
  const fetchIdentity = async () =>
    parseAnswer((await performCall(settings, dependencies, prepareCall('nodeIdentity', {}))).bytes);
  const pinned = pin === undefined ? undefined : new PinnedNode(pin, fetchIdentity, dependencies.verify);
  const proof: Proof | undefined =
    pinned === undefined
      ? undefined
      : {
          nonce: () => (randomBytes as (length: number) => Bytes)(NONCE_BYTES),
          prove: ({ route, target, body }, answer, nonce) =>
            pinned.prove({ method: route.method, target, requestBody: body ?? new Uint8Array(0), nonce }, answer),
        };

  async function call<N extends RouteName>(name: N, input: Readonly<Record<string, unknown>>): Promise<RouteAnswer<N>> {
    const answer = await performCall(settings, dependencies, prepareCall(name, input), proof);
    const document = parseAnswer(answer.bytes);
    const problem = check(ROUTES[name].answer, document, '', { unknownFields: 'ignore' });
    if (problem !== undefined)
      throw new ApiError('client_bad_answer', answer.status, `${problem.field} ${problem.problem}`);
    return document as RouteAnswer<N>;
  }

  const calls: Record<string, unknown> = {};
  for (const name of ROUTE_NAMES) calls[name] = (input: Readonly<Record<string, unknown>> = {}) => call(name, input);

  async function submitTransaction(wire: Bytes): Promise<SubmissionResult> {
    const name = toHex(transactionId(decodeTransaction(wire).body));
    try {
      const result = await call('submitTransaction', { api_version: API_VERSION, wire_hex: toHex(wire) });
      if (result.transaction_id !== name)
        throw new ApiError('client_outcome_unknown', 200, `the server names another transaction than ${name}`);
      return result;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // An answer that cannot be read or verified counts as lost.
      const lost = ['client_outcome_unknown', 'client_bad_answer', 'client_answer_unproven'].includes(error.code);
      if (!lost) throw error;
      const unknown = new ApiError('client_outcome_unknown', error.status, `${name}: ${error.message}`);
      try {
        const status = await call('transactionStatus', { id: name });
        return { api_version: API_VERSION, transaction_id: name, status: 'known', lifecycle: status.lifecycle };
      } catch {
        throw unknown;
      }
    }
  }

  return { ...(calls as Calls), baseUrl: settings.baseUrl, submitTransaction };
}
