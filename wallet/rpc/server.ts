/**
 * The daemon's listener: `POST /v1/rpc` with the bearer token, `GET /health` without, events on `/v1/ws`. Everything a
 * client can make it hold is bounded: bodies, calls in progress, calls a second, sockets.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { ListenAddress } from '../../protocol/command-line.ts';
import { isLoopback } from '../../runtime/client-address.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { dispatch, RPC_ERRORS, readRequest, rpcError } from './dispatch.ts';
import { EventSockets } from './sockets.ts';
import { bearerCheck } from './token.ts';

export const SERVER_LIMITS = {
  bodyBytes: 128 * 1024,
  callsInProgress: 256,
  callsPerSecond: 500,
  connections: 128,
  sockets: 16,
} as const;

export type WalletServerOptions = {
  readonly listen: ListenAddress;
  readonly allowRemote: boolean;
  readonly token: string;
};

/** Refusals before a call is a call, as `error.code` of the body, with their HTTP status. */
export const WALLET_HTTP_ERRORS = {
  not_found: 404,
  tls_required: 403,
  unauthorized: 401,
  method_not_allowed: 405,
  media_type_unsupported: 415,
  body_too_large: 413,
  too_many_requests: 429,
  too_busy: 503,
  internal: 500,
} as const;
type HttpRefusal = {
  readonly code: keyof typeof WALLET_HTTP_ERRORS;
  readonly message: string;
  readonly retryMillis?: number;
};

const isThisMachine = (host: string): boolean => host === 'localhost' || isLoopback(host);

export class WalletServer {
  readonly #wallet: Wallet;
  readonly #options: WalletServerOptions;
  readonly #http: Server;
  readonly #sockets: EventSockets;
  readonly #authorized: (header: string | undefined) => boolean;
  #inProgress = 0;
  #allowance: number = SERVER_LIMITS.callsPerSecond;
  #refilled: number;

  constructor(wallet: Wallet, options: WalletServerOptions) {
    if (!options.allowRemote && !isThisMachine(options.listen.host))
      throw new WalletError(
        'remote_not_allowed',
        `${options.listen.host} is not this machine: --allow-remote permits it, behind TLS`,
      );
    this.#wallet = wallet;
    this.#options = options;
    this.#authorized = bearerCheck(options.token);
    this.#refilled = wallet.now();
    this.#http = createServer({
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 30_000,
      maxHeaderSize: 8192,
    });
    this.#http.maxConnections = SERVER_LIMITS.connections;
    this.#http.on('request', (request, response) => {
      this.#serve(request, response).catch((error) => {
        wallet.log.error('request failed', { error });
        if (response.headersSent) response.destroy();
        else this.#answer(response, 500, { error: { code: 'internal', message: 'internal error' } });
      });
    });
    this.#sockets = new EventSockets(wallet, SERVER_LIMITS.sockets);
    this.#http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      const refusal =
        this.#refusalOf(request, '/v1/ws') ??
        (this.#sockets.full ? ({ code: 'too_busy', message: '' } as const) : undefined);
      if (refusal !== undefined) {
        socket.end(
          `HTTP/1.1 ${WALLET_HTTP_ERRORS[refusal.code]} ${refusal.code}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
        );
        return;
      }
      this.#sockets.accept(request, socket, head);
    });
  }

  async start(): Promise<ListenAddress> {
    const { host, port } = this.#options.listen;
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(port, host, () => {
        this.#http.off('error', reject);
        resolve();
      });
    });
    return { host, port: (this.#http.address() as AddressInfo).port };
  }

  async close(): Promise<void> {
    this.#sockets.close();
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()));
    this.#http.closeIdleConnections();
    // Calls in progress get their answer; whoever does not read it does not hold up the end.
    const timer = setTimeout(() => this.#http.closeAllConnections(), 5_000);
    await closed;
    clearTimeout(timer);
  }

  #answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, {
      'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      ...headers,
    });
    response.end(text);
  }

  #refuse(response: ServerResponse, refusal: HttpRefusal): void {
    const { code, message, retryMillis } = refusal;
    const status = WALLET_HTTP_ERRORS[code];
    // What is left of the body is not read.
    this.#answer(
      response,
      status,
      { error: { code, message }, ...(retryMillis === undefined ? {} : { retry_after_millis: retryMillis }) },
      { connection: 'close' },
    );
  }

  #refusalOf(request: IncomingMessage, path: string): HttpRefusal | undefined {
    if (request.url !== path) return { code: 'not_found', message: 'offered: POST /v1/rpc, GET /health, /v1/ws' };
    const { authorization, 'x-forwarded-proto': proto } = request.headers;
    const fromHere = isLoopback(request.socket.remoteAddress ?? '') && proto === undefined;
    if (this.#options.allowRemote && !fromHere && proto !== 'https')
      return { code: 'tls_required', message: 'calls from other machines must come through a TLS proxy' };
    if (!this.#authorized(authorization))
      return { code: 'unauthorized', message: 'Authorization: Bearer TOKEN is missing or wrong' };
    return undefined;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/health' && request.method === 'GET') return this.#answer(response, 200, 'ok');
    const refusal = this.#refusalOf(request, '/v1/rpc');
    if (refusal !== undefined) return this.#refuse(response, refusal);
    if (request.method !== 'POST')
      return this.#refuse(response, { code: 'method_not_allowed', message: 'calls are POST' });
    if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
      return this.#refuse(response, { code: 'media_type_unsupported', message: 'send application/json' });
    const wait = this.#take();
    if (wait > 0)
      return this.#refuse(response, { code: 'too_many_requests', message: 'too many calls', retryMillis: wait });
    if (this.#inProgress >= SERVER_LIMITS.callsInProgress)
      return this.#refuse(response, { code: 'too_busy', message: 'too many calls in progress', retryMillis: 1000 });
    this.#inProgress++;
    try {
      const body = await readBody(request, SERVER_LIMITS.bodyBytes);
      if (body === undefined)
        return this.#refuse(response, { code: 'body_too_large', message: `at most ${SERVER_LIMITS.bodyBytes} bytes` });
      if (body === null) return this.#answer(response, 200, rpcError(null, RPC_ERRORS.parse, 'the body is not UTF-8'));
      const parsed = readRequest(body);
      this.#answer(response, 200, 'jsonrpc' in parsed ? parsed : await dispatch(this.#wallet, parsed));
    } finally {
      this.#inProgress--;
    }
  }

  /** Takes one call from the allowance; otherwise says how long to wait. */
  #take(): number {
    const now = this.#wallet.now();
    const rate = SERVER_LIMITS.callsPerSecond;
    this.#allowance = Math.min(rate, this.#allowance + ((now - this.#refilled) * rate) / 1000);
    this.#refilled = now;
    if (this.#allowance >= 1) {
      this.#allowance--;
      return 0;
    }
    return Math.ceil((1000 * (1 - this.#allowance)) / rate);
  }
}

/** Undefined when it is too long, null when it is not UTF-8. */
function readBody(request: IncomingMessage, most: number): Promise<string | undefined | null> {
  if (Number(request.headers['content-length'] ?? 0) > most) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let length = 0;
    request.on('data', (part: Buffer) => {
      length += part.length;
      if (length <= most) parts.push(part);
      else {
        request.pause();
        resolve(undefined);
      }
    });
    request.once('error', reject);
    request.once('close', () => reject(new Error('the call ended in the middle of its body')));
    request.once('end', () => {
      try {
        resolve(decoder.decode(Buffer.concat(parts)));
      } catch {
        resolve(null);
      }
    });
  });
}

const decoder = new TextDecoder('utf-8', { fatal: true });
