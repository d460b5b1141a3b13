/**
 * The HTTP side of the public API (specification: Conventions, Authentication, Errors, Limits) behind the admission
 * checks that all programs share (runtime/door/): a request costs parsing and one write here. Browsers are admitted by
 * origin; answers are signed if the request has a nonce.
 */
import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http';
import { MAX_REQUEST_BODY, MAX_TARGET, SOCKETS } from '../../protocol/api/routes.ts';
import { ANSWER_HEADERS } from '../../protocol/api/signed-answer.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { clientKey, type TrustedProxies } from '../../runtime/clients/client-address.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { hasBody, readBody } from '../../runtime/door/body.ts';
import { Door, type DoorErrorCode, type DoorHandlers } from '../../runtime/door/door.ts';
import type { Words } from '../../runtime/door/last-words.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { ApiContext } from './api-context.ts';
import { Refusal, refusal } from './api-error.ts';
import type { ApiLimits } from './api-limits.ts';
import { type ApiAnswer, type Caller, dispatch, NOT_READY_MILLIS, refusalAnswer } from './dispatch.ts';
import { frontPage, type RouteList, routesOffered } from './front-page.ts';
import type { NodeIdentity, SigningPlace } from './identity.ts';
import type { RateLimiter } from './rate-limit.ts';
import { methodsAt } from './route-match.ts';
import { isNonce, NONCE_RULE, signedHeaders } from './signed-headers.ts';
import { Turns } from './turns.ts';

export type HttpOptions = {
  readonly version: string;
  readonly network: NetworkName;
  readonly browserOrigins: readonly string[];
  /** Host names that the API accepts, besides addresses and local names; null: all names are allowed. */
  readonly hosts: readonly string[] | null;
  readonly limits: ApiLimits;
};
export type UpgradeHandler = NonNullable<DoorHandlers['upgrade']>;
export type HttpDependencies = {
  readonly context: () => ApiContext | undefined;
  readonly identity: NodeIdentity;
  readonly rate: RateLimiter;
  readonly proxies: TrustedProxies;
  readonly now: SteadyClock;
  readonly log: Logger;
};

const NOTHING = new Uint8Array(0);
/** Cost of a signature beyond the answer: 2 ms of one of the few signing threads. */
const SIGNING_COST = 4;
const EXPOSED = Object.values(ANSWER_HEADERS).join(', ');

const isSigned = ({ headers, method }: IncomingMessage): boolean =>
  headers[ANSWER_HEADERS.nonce] !== undefined && method !== 'HEAD';

const isPlain = (target: string): boolean => target === '/' || target === '/health';

/** Connections reserved for programs of this machine. */
const OWN_CONNECTIONS = 64;

export class ApiHttp {
  readonly #door: Door;
  readonly #turns = new Turns();
  readonly #dependencies: HttpDependencies;
  readonly #list: RouteList;
  readonly #listJson: string;

  /** `upgrade` opens the WebSockets (sockets.ts). */
  constructor(options: HttpOptions, dependencies: HttpDependencies, upgrade: UpgradeHandler) {
    this.#dependencies = dependencies;
    this.#list = routesOffered(options.version, options.network);
    this.#listJson = JSON.stringify(this.#list);
    const { connections, connectionsPerClient, heldBytes } = options.limits;
    this.#door = new Door(
      {
        name: 'api',
        limits: {
          connections,
          perClient: connectionsPerClient,
          reserved: Math.min(OWN_CONNECTIONS, connections >> 1),
          headBytes: 16_384,
          bodyBytes: MAX_REQUEST_BODY,
          headMillis: 10_000,
          requestMillis: 30_000,
          answerMillis: 120_000,
          stallMillis: 30_000,
          idleMillis: 75_000,
          heldBytes,
        },
        hosts: options.hosts,
        origins: options.browserOrigins,
        proxies: dependencies.proxies,
        inTurns: true,
      },
      { request: (request, response) => this.#serve(request, response), upgrade, words: doorWords },
      { log: dependencies.log },
    );
  }

  clientOf(request: IncomingMessage): string {
    const { socket, headers } = request;
    return clientKey(this.#dependencies.proxies.clientOf(socket.remoteAddress ?? '', headers['x-forwarded-for']));
  }

  caller(client: string): Caller {
    return {
      allow: (cost) => this.allow(client, cost),
      turn: (cost, work) => this.#turns.run(client, cost, work),
    };
  }

  /** Begins what a client sent after its request, in turn between clients. */
  turn(client: string): Promise<void> {
    return this.#door.turn(client);
  }

  /** Takes a cost from the client's allowance. */
  allow(client: string, cost: number): void {
    const verdict = this.#dependencies.rate.take(client, cost, this.#dependencies.now());
    if (verdict.ok) return;
    const message =
      verdict.code === 'client_blocked'
        ? 'this address kept sending over its limit and is blocked for a while'
        : 'this address sends more requests than it may';
    throw refusal(verdict.code, message, {}, verdict.retryAfterMillis);
  }

  /** What a client got beyond what was taken before: it waits until that is regained. */
  owe(client: string, cost: number): void {
    this.#dependencies.rate.charge(client, cost, this.#dependencies.now());
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { origin } = request.headers;
    let body: Uint8Array | undefined = hasBody(request) ? undefined : NOTHING;
    let place: SigningPlace | undefined;
    try {
      if (origin !== undefined) {
        response.setHeader('access-control-allow-origin', origin);
        response.setHeader('access-control-expose-headers', EXPOSED);
        response.setHeader('vary', 'origin');
      }
      const target = request.url ?? '';
      if (target.length > MAX_TARGET) throw refusal('target_too_long', `a target has at most ${MAX_TARGET} characters`);
      if (request.method === 'OPTIONS') return this.#preflight(request, response);
      if (isSocketPath(target))
        throw refusal('upgrade_required', 'this is a WebSocket: open it as one, with its subprotocol');
      const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '');
      // A plain route ignores a body, as it always did.
      if (!isPlain(target)) body = await readRequestBody(request);
      if (hasBody(request)) await this.turn(this.clientOf(request));
      const caller = this.caller(this.clientOf(request));
      place = this.#signingPlace(request, caller);
      const answer = isPlain(target)
        ? this.#plain(method, target, caller, (request.headers.accept ?? '').includes('text/html'))
        : await dispatch({ method, target, body: body ?? NOTHING }, caller, this.#dependencies);
      await this.#answer(request, response, body, answer, place);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (place === undefined && isSigned(request) && isNonce(request.headers[ANSWER_HEADERS.nonce]))
        place = this.#dependencies.identity.place(this.clientOf(request));
      await this.#answer(request, response, body, refusalAnswer(error), place);
    } finally {
      place?.leave();
    }
  }

  /** Everything that could keep the answer from being signed is refused here, before the request takes effect. */
  #signingPlace(request: IncomingMessage, caller: Caller): SigningPlace | undefined {
    if (!isSigned(request)) return undefined;
    caller.allow(SIGNING_COST);
    if (!isNonce(request.headers[ANSWER_HEADERS.nonce]))
      throw refusal('bad_request', NONCE_RULE, { field: ANSWER_HEADERS.nonce });
    const place = this.#dependencies.identity.place(this.clientOf(request));
    if (place === undefined) throw refusal('too_busy', 'too many answers are waiting to be signed', {}, 1_000);
    return place;
  }

  #preflight(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers.origin === undefined) throw refusal('method_not_allowed', 'OPTIONS is for browsers');
    response
      .writeHead(204, {
        'access-control-allow-methods': 'GET, POST',
        'access-control-allow-headers': `content-type, ${ANSWER_HEADERS.nonce}`,
        'access-control-max-age': '600',
      })
      .end();
  }

  /** `/` and `/health`, which are no documents of the table; a socket's `request` frame asks them too. */
  #plain(method: string, target: string, caller: Pick<Caller, 'allow'>, asPage: boolean): ApiAnswer {
    if (method !== 'GET') throw refusal('method_not_allowed', 'this route takes GET');
    caller.allow(1);
    if (target === '/health') {
      const ready = this.#dependencies.context() !== undefined;
      const contentType = 'text/plain; charset=utf-8';
      if (ready) return { status: 200, json: 'ok', contentType };
      return { status: 503, json: 'not ready', contentType, waitMillis: NOT_READY_MILLIS };
    }
    if (!asPage) return { status: 200, json: this.#listJson };
    return {
      status: 200,
      json: frontPage(this.#list),
      contentType: 'text/html; charset=utf-8',
      headers: [
        'content-security-policy',
        "default-src 'none'; style-src 'unsafe-inline'",
        'x-content-type-options',
        'nosniff',
      ],
    };
  }

  /** A GET route for a `request` frame; `/` and `/health` are such routes too. */
  async read(target: string, caller: Caller): Promise<ApiAnswer> {
    try {
      if (!isPlain(target)) return await dispatch({ method: 'GET', target, body: NOTHING }, caller, this.#dependencies);
      const answer = this.#plain('GET', target, caller, false);
      return answer.contentType === undefined ? answer : { ...answer, json: JSON.stringify(answer.json) };
    } catch (error) {
      if (error instanceof Refusal) return refusalAnswer(error);
      throw error;
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    requestBody: Uint8Array | undefined,
    answer: ApiAnswer,
    place: SigningPlace | undefined,
  ): Promise<void> {
    const { status, json, waitMillis, contentType = 'application/json' } = answer;
    const isBlocked = answer.isBlocked === true;
    // A body that was not read completely is not known, and cannot be signed for.
    const signed =
      place === undefined || requestBody === undefined || isBlocked
        ? []
        : await this.#sign(request, requestBody, answer, place);
    const length = Buffer.byteLength(json);
    // The rest of a refused body is not read: the connection is closed.
    const unread = hasBody(request) && !request.complete;
    const headers = [
      ...(response.getHeaderNames().length === 0 ? [] : Object.entries(response.getHeaders()).flat()),
      'content-type',
      contentType,
      'cache-control',
      'no-store',
      'content-length',
      length,
      ...(waitMillis === undefined ? [] : ['retry-after', Math.max(1, Math.ceil(waitMillis / 1000))]),
      ...(status === 405 ? ['allow', allowedMethods(request.url ?? '')] : []),
      ...(unread || isBlocked ? ['connection', 'close'] : []),
      ...(answer.headers ?? []),
      ...signed,
    ];
    response.writeHead(status, headers as OutgoingHttpHeader[]);
    // Text, so that head and body leave in one write; nearly all of it is ASCII, which needs no encoding.
    if (typeof json === 'string') response.end(json, length === json.length ? 'latin1' : 'utf8');
    else response.end(json);
  }

  /** The headers of a signed answer; none while there is no chain to bind it to. */
  async #sign(
    request: IncomingMessage,
    requestBody: Uint8Array,
    { status, json }: ApiAnswer,
    place: SigningPlace,
  ): Promise<readonly string[]> {
    const { context, identity } = this.#dependencies;
    const node = context()?.node;
    if (node === undefined) return [];
    const answerBody = typeof json === 'string' ? Buffer.from(json) : json;
    const asked = { method: request.method ?? '', target: request.url ?? '', requestBody };
    const nonce = request.headers[ANSWER_HEADERS.nonce] as string;
    return await signedHeaders({ ...asked, status, answerBody }, nonce, identity, place, node.chain);
  }

  listen(address: ListenAddress): Promise<ListenAddress> {
    return this.#door.listen(address, { what: 'the public API', backlog: 4096 });
  }

  /** Answers in flight get a short time; then their connections are closed. */
  close(): Promise<void> {
    return this.#door.close(2_000);
  }
}

function allowedMethods(target: string): string {
  const methods = methodsAt(target.split('?')[0] as string);
  return (methods.length === 0 ? ['GET'] : methods).join(', ');
}

const SOCKET_PATHS = Object.values(SOCKETS).map(({ path }) => new RegExp(`^${path.replace('{id}', '[^/]+')}(\\?|$)`));
const isSocketPath = (target: string): boolean => SOCKET_PATHS.some((path) => path.test(target));

/** Reads a complete JSON body of at most 128 KiB. */
async function readRequestBody(request: IncomingMessage): Promise<Uint8Array> {
  if (request.method === 'GET' || request.method === 'HEAD') {
    if (hasBody(request)) throw refusal('bad_request', 'a GET request has no body');
    return NOTHING;
  }
  if (request.method !== 'POST') return NOTHING;
  if (!/^application\/json\s*(;\s*charset=utf-8\s*)?$/i.test(request.headers['content-type'] ?? ''))
    throw refusal('media_type_unsupported', 'the body must be application/json');
  const body = await readBody(request, MAX_REQUEST_BODY);
  if (body === 'too_large') throw refusal('body_too_large', `a body has at most ${MAX_REQUEST_BODY} bytes`);
  if (body === 'incomplete') throw refusal('request_timeout', 'the request did not arrive completely');
  return body;
}

export const wordsOf = ({ status, document }: Refusal): Words => ({
  status,
  type: 'application/json',
  body: JSON.stringify(document),
});

function doorWords(code: DoorErrorCode, message: string): Words {
  const remedy = code === 'origin_refused' ? '; the operator can add --browser-origin' : '';
  return wordsOf(refusal(code, `${message}${remedy}`));
}
