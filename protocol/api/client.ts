/**
 * The typed client of the public API, for Node and browsers alike: a method per route, submissions that are never sent
 * twice after a lost answer, answers checked against a pinned identity on wish, and the streams of client-streams.ts.
 */
import { type Bytes, equalBytes, fromHex, toHex } from '../bytes.ts';
import { decodeTransaction, transactionId } from '../transaction.ts';
import {
  ApiError,
  CALL_DEFAULTS,
  type CallDependencies,
  type CallOptions,
  parseAnswer,
  performCall,
  prepareCall,
  type RawAnswer,
} from './client-calls.ts';
import { API_VERSION, nodeIdentity, type SubmissionResult } from './documents.ts';
import { ROUTE_NAMES, ROUTES, type RouteAnswer, type RouteInput, type RouteName } from './routes.ts';
import { check, type Infer } from './schema.ts';
import { NONCE_BYTES, serviceIdentity, type VerifySignature, verifySignedAnswer } from './signed-answer.ts';

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
   * transaction either, the outcome stays unknown (`client_outcome_unknown`), and asking again later is the caller's.
   */
  submitTransaction(wire: Bytes): Promise<SubmissionResult>;
};

export type ClientOptions = {
  /** Such as http://127.0.0.1:28701, without a slash at the end. */
  readonly baseUrl: string;
  readonly attempts?: number;
  readonly timeoutMillis?: number;
  readonly maxWaitMillis?: number;
  /** With a pin every answer must be signed by that identity for that chain, or the call fails. */
  readonly pin?: { readonly identity: string; readonly chainId: string };
};

export type ClientDependencies = CallDependencies & {
  /** Fills a nonce with random bytes; needed with a pin. */
  readonly randomBytes?: (length: number) => Bytes;
  readonly verify?: VerifySignature;
};

/** `timeoutMillis` covers one try; fetch gives up by itself when it passes. */
export function createApiClient(options: ClientOptions, dependencies: ClientDependencies): ApiClient {
  const settings: CallOptions = { ...CALL_DEFAULTS, ...options, baseUrl: options.baseUrl.replace(/\/+$/, '') };
  const { pin } = options;
  const { randomBytes } = dependencies;
  if (pin !== undefined && randomBytes === undefined)
    throw new ApiError('client_bad_input', 0, 'a pinned client needs a source of random bytes');
  const nonce = pin === undefined ? undefined : () => (randomBytes as (length: number) => Bytes)(NONCE_BYTES);
  let publicKey: Bytes | undefined;

  async function fetchKey(pinned: Bytes): Promise<Bytes> {
    const answer = await performCall(settings, dependencies, prepareCall('nodeIdentity', {}));
    const document = parseAnswer(answer.bytes);
    if (check(nodeIdentity, document, '', { unknownFields: 'ignore' }) !== undefined)
      throw new ApiError('client_bad_answer', answer.status, 'not an identity document');
    const key = fromHex((document as Infer<typeof nodeIdentity>).public_key);
    if (!equalBytes(serviceIdentity(key), pinned))
      throw new ApiError(
        'client_answer_unproven',
        answer.status,
        'the server has another identity than the pinned one',
      );
    return key;
  }

  async function prove(name: RouteName, target: string, body: Bytes | undefined, answer: RawAnswer, sent: Bytes) {
    if (pin === undefined) return;
    const pinnedIdentity = fromHex(pin.identity);
    publicKey ??= await fetchKey(pinnedIdentity);
    const verdict = verifySignedAnswer(
      {
        method: ROUTES[name].method,
        target,
        requestBody: body ?? new Uint8Array(0),
        status: answer.status,
        answerBody: answer.bytes,
        nonce: sent,
        chainId: fromHex(pin.chainId),
        header: answer.header,
        publicKey,
        pinnedIdentity,
      },
      dependencies.verify,
    );
    if (!verdict.ok) throw new ApiError('client_answer_unproven', answer.status, verdict.problem);
  }

  async function call<N extends RouteName>(name: N, input: Readonly<Record<string, unknown>>): Promise<RouteAnswer<N>> {
    const prepared = prepareCall(name, input);
    const answer = await performCall(settings, dependencies, prepared, nonce);
    if (answer.nonce !== undefined) await prove(name, prepared.target, prepared.body, answer, answer.nonce);
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
      // An answer that arrived but cannot be read or proven says as little as one that was lost.
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
