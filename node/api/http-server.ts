/**
 * The HTTP side of the public API (specification: Conventions, Authentication, Errors, Limits). Plain node:http: what a request costs here is
 * parsing and one write. Bodies are bounded before they are buffered, browsers are admitted by origin, answers are signed
 * when a nonce asks for it.
 */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { MAX_REQUEST_BODY, MAX_TARGET, SOCKETS } from '../../protocol/api/routes.ts';
import { ANSWER_HEADERS, answerMessage, ENVELOPE_VERSION, NONCE_BYTES } from '../../protocol/api/signed-answer.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import type { ListenAddress } from '../../protocol/command-line.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { clientKey, type TrustedProxies } from '../../runtime/client-address.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ApiContext } from './api-context.ts';
import { Refusal, refusal } from './api-error.ts';
import type { ApiLimits } from './api-limits.ts';
import { type ApiAnswer, dispatch, refusalAnswer } from './dispatch.ts';
import { frontPage, type RouteList, routesOffered } from './front-page.ts';
import type { NodeIdentity } from './identity.ts';
import type { RateLimiter } from './rate-limit.ts';
import { methodsAt } from './route-match.ts';

export type HttpOptions = {
  readonly version: string;
  readonly network: NetworkName;
  readonly browserOrigins: readonly string[];
  readonly limits: ApiLimits;
};
export type HttpDependencies = {
  readonly context: () => ApiContext | undefined;
  readonly identity: NodeIdentity;
  readonly rate: RateLimiter;
  readonly proxies: TrustedProxies;
  readonly now: () => number;
  readonly log: Logger;
};

const NOTHING = new Uint8Array(0);
const EXPOSED = Object.values(ANSWER_HEADERS).join(', ');

export class ApiHttp {
  readonly server: Server;
  readonly #options: HttpOptions;
  readonly #dependencies: HttpDependencies;
  readonly #origins: ReadonlySet<string>;
  readonly #list: RouteList;
  readonly #listJson: string;
  readonly #connections = new Map<string, number>();

  constructor(options: HttpOptions, dependencies: HttpDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#origins = new Set(options.browserOrigins);
    this.#list = routesOffered(options.version, options.network);
    this.#listJson = JSON.stringify(this.#list);
    this.server = createServer(
      {
        requestTimeout: 30_000,
        headersTimeout: 10_000,
        keepAliveTimeout: 75_000,
        connectionsCheckingInterval: 5_000,
        maxHeaderSize: 16_384,
        noDelay: true,
      },
      (request, response) => void this.#serve(request, response),
    );
    // A client that is done sending still gets the answers it asked for.
    Object.assign(this.server, { httpAllowHalfOpen: true });
    this.server.maxConnections = options.limits.connections;
    this.server.on('connection', (socket: Socket) => this.#connected(socket));
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => badConnection(error, socket));
    this.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      // Whoever asks before sending too much is told so before sending it.
      if (Number(request.headers['content-length'] ?? 0) <= MAX_REQUEST_BODY) response.writeContinue();
      void this.#serve(request, response);
    });
  }

  /** One client may not take all connections; proxies speak for many. */
  #connected(socket: Socket): void {
    const client = clientKey(socket.remoteAddress ?? '');
    const open = (this.#connections.get(client) ?? 0) + 1;
    if (
      open > this.#options.limits.connectionsPerClient &&
      !this.#dependencies.proxies.has(socket.remoteAddress ?? '')
    ) {
      socket.destroy();
      return;
    }
    this.#connections.set(client, open);
    socket.once('close', () => {
      const left = (this.#connections.get(client) ?? 1) - 1;
      if (left === 0) this.#connections.delete(client);
      else this.#connections.set(client, left);
    });
  }

  clientOf(request: IncomingMessage): string {
    const { socket, headers } = request;
    return clientKey(this.#dependencies.proxies.clientOf(socket.remoteAddress ?? '', headers['x-forwarded-for']));
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

  /** A web page may call only from an origin the operator admitted; programs send no Origin. */
  checkOrigin(origin: string | undefined): void {
    if (origin !== undefined && !this.#origins.has(origin))
      throw refusal('origin_refused', 'this browser origin is not admitted; the operator can add --browser-origin');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => response.destroy());
    const { origin } = request.headers;
    try {
      this.checkOrigin(origin);
      if (origin !== undefined) {
        response.setHeader('access-control-allow-origin', origin);
        response.setHeader('access-control-expose-headers', EXPOSED);
        response.setHeader('vary', 'origin');
      }
      const target = request.url ?? '';
      if (target.length > MAX_TARGET) throw refusal('target_too_long', `a target has at most ${MAX_TARGET} characters`);
      if (request.method === 'OPTIONS') return this.#preflight(request, response);
      if (target === '/' || target === '/health') return this.#plain(request, response, target);
      if (isSocketPath(target))
        throw refusal('upgrade_required', 'this is a WebSocket: open it as one, with its subprotocol');
      const body = await readRequestBody(request);
      const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '');
      const client = this.clientOf(request);
      const answer = await dispatch({ method, target, body }, (cost) => this.allow(client, cost), this.#dependencies);
      await this.#answer(request, response, body, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) {
        this.#dependencies.log.error('a request failed', { target: request.url, error });
        response.destroy();
        return;
      }
      await this.#answer(request, response, NOTHING, refusalAnswer(error));
    }
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

  #plain(request: IncomingMessage, response: ServerResponse, target: string): void {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw refusal('method_not_allowed', 'this route takes GET');
    this.allow(this.clientOf(request), 1);
    request.resume();
    const send = (status: number, type: string, text: string, headers: Record<string, string> = {}): void => {
      const bytes = Buffer.from(text);
      response
        .writeHead(status, {
          'content-type': type,
          'content-length': bytes.length,
          'cache-control': 'no-store',
          ...headers,
        })
        .end(bytes);
    };
    if (target === '/health') {
      const ready = this.#dependencies.context() !== undefined;
      send(ready ? 200 : 503, 'text/plain; charset=utf-8', ready ? 'ok' : 'not ready');
    } else if ((request.headers.accept ?? '').includes('text/html'))
      send(200, 'text/html; charset=utf-8', frontPage(this.#list), {
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
        'x-content-type-options': 'nosniff',
      });
    else send(200, 'application/json', this.#listJson);
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    requestBody: Uint8Array,
    answer: ApiAnswer,
  ): Promise<void> {
    const nonce = request.headers[ANSWER_HEADERS.nonce];
    let { status, json, waitMillis } = answer;
    let signed: readonly string[] = [];
    if (nonce !== undefined && request.method !== 'HEAD') {
      const result = await this.#sign(request, requestBody, answer, nonce);
      if (result instanceof Refusal) ({ status, json, waitMillis } = refusalAnswer(result));
      else signed = result;
    }
    const length = Buffer.byteLength(json);
    // The rest of a body that was refused is not worth reading, and neither is a client that does not stop.
    const unread = hasBody(request) && !request.complete;
    const { socket } = request;
    const headers = [
      ...(response.getHeaderNames().length === 0 ? [] : Object.entries(response.getHeaders()).flat()),
      'content-type',
      'application/json',
      'cache-control',
      'no-store',
      'content-length',
      length,
      ...(waitMillis === undefined ? [] : ['retry-after', Math.max(1, Math.ceil(waitMillis / 1000))]),
      ...(status === 405 ? ['allow', allowedMethods(request.url ?? '')] : []),
      ...(unread ? ['connection', 'close'] : []),
      ...signed,
    ];
    response.writeHead(status, headers as OutgoingHttpHeader[]);
    // Text, so that head and body leave in one write; nearly all of it is ASCII, which needs no encoding.
    if (typeof json === 'string') response.end(json, length === json.length ? 'latin1' : 'utf8');
    else response.end(json);
    if (unread) socket.destroySoon();
  }

  /** The headers of a signed answer, or why it cannot be signed. */
  async #sign(
    request: IncomingMessage,
    requestBody: Uint8Array,
    answer: ApiAnswer,
    nonce: string | string[],
  ): Promise<readonly string[] | Refusal> {
    const { context, identity } = this.#dependencies;
    if (typeof nonce !== 'string' || !/^[0-9a-f]{64}$/.test(nonce))
      return refusal('bad_request', `${ANSWER_HEADERS.nonce} is ${NONCE_BYTES} bytes in lower-case hex`, {
        field: ANSWER_HEADERS.nonce,
      });
    const node = context()?.node;
    if (node === undefined) return [];
    const finalizedHeight = node.head().height;
    const signature = await identity.sign(
      answerMessage({
        method: request.method ?? '',
        target: request.url ?? '',
        requestBody,
        status: answer.status,
        answerBody: typeof answer.json === 'string' ? Buffer.from(answer.json) : answer.json,
        nonce: fromHex(nonce),
        chainId: node.chainId,
        finalizedHeight,
      }),
    );
    if (signature === undefined) return refusal('too_busy', 'too many answers are waiting to be signed', {}, 1_000);
    return [
      ...[ANSWER_HEADERS.version, String(ENVELOPE_VERSION)],
      ...[ANSWER_HEADERS.identity, toHex(identity.identity)],
      ...[ANSWER_HEADERS.nonce, nonce],
      ...[ANSWER_HEADERS.tipHeight, String(finalizedHeight)],
      ...[ANSWER_HEADERS.signature, toHex(signature)],
    ];
  }

  listen(address: ListenAddress): Promise<ListenAddress> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host: address.host, port: address.port, backlog: 4096 }, () => {
        this.server.off('error', reject);
        resolve({ host: address.host, port: (this.server.address() as AddressInfo).port });
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeIdleConnections();
      // Answers under way get a moment; after it nobody is waited for.
      setTimeout(() => this.server.closeAllConnections(), 2_000).unref();
    });
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

function allowedMethods(target: string): string {
  const methods = methodsAt(target.split('?')[0] as string);
  return (methods.length === 0 ? ['GET'] : methods).join(', ');
}

const SOCKET_PATHS = Object.values(SOCKETS).map(({ path }) => new RegExp(`^${path.replace('{id}', '[^/]+')}(\\?|$)`));
const isSocketPath = (target: string): boolean => SOCKET_PATHS.some((path) => path.test(target));

/** At most 128 KiB, as JSON, whole. Anything longer is refused before it is kept. */
async function readRequestBody(request: IncomingMessage): Promise<Uint8Array> {
  const length = request.headers['content-length'];
  if (request.method === 'GET' || request.method === 'HEAD') {
    if (hasBody(request)) throw refusal('bad_request', 'a GET request has no body');
    return NOTHING;
  }
  if (request.method !== 'POST') return NOTHING;
  if (!/^application\/json\s*(;\s*charset=utf-8\s*)?$/i.test(request.headers['content-type'] ?? ''))
    throw refusal('media_type_unsupported', 'the body must be application/json');
  const tooLarge = () => refusal('body_too_large', `a body has at most ${MAX_REQUEST_BODY} bytes`);
  if (Number(length ?? 0) > MAX_REQUEST_BODY) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  // Not an async iterator: leaving one early would destroy the connection before the refusal is written.
  return new Promise((resolve, reject) => {
    const take = (part: Buffer): void => {
      size += part.length;
      if (size <= MAX_REQUEST_BODY) {
        parts.push(part);
        return;
      }
      request.off('data', take).pause();
      reject(tooLarge());
    };
    request.on('data', take);
    request.on('end', () => resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)));
    request.on('error', () => reject(refusal('request_timeout', 'the request did not arrive whole')));
  });
}

/** What node:http could not read as a request. */
function badConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const refused =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? refusal('headers_too_large', 'the headers are too large')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? refusal('request_timeout', 'the request did not arrive in time')
        : refusal('bad_request', 'this is not an HTTP request');
  const body = JSON.stringify(refused.document);
  socket.end(
    `HTTP/1.1 ${refused.status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
