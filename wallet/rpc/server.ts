/**
 * The daemon's listener: `POST /v1/rpc` with the bearer token, `GET /health` without, events on `/v1/ws`. Everything a
 * client can make it hold is bounded: bodies, calls in progress, calls a second, sockets.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { isLoopback, TrustedProxies } from '../../runtime/clients/client-address.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { readBody } from '../../runtime/door/body.ts';
import { connectionOf } from '../../runtime/door/connection.ts';
import { DOOR_ERRORS, Door, type DoorLimits, refuseUpgrade } from '../../runtime/door/door.ts';
import type { Words } from '../../runtime/door/last-words.ts';
import type { Target } from '../../runtime/door/target.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { dispatch, RPC_ERRORS, readRequest, rpcError } from './dispatch.ts';
import { isSecureCall } from './secure-call.ts';
import { EventSockets } from './sockets.ts';
import { bearerCheck } from './token.ts';

export const SERVER_LIMITS = {
  bodyBytes: 128 * 1024,
  callsInProgress: 256,
  callsPerSecond: 500,
  sockets: 16,
} as const;

const DOOR_LIMITS: DoorLimits = {
  connections: 128,
  // Other machines must not use up the connections of the pool that pays through this wallet.
  reserved: 64,
  headBytes: 8_192,
  bodyBytes: SERVER_LIMITS.bodyBytes,
  headMillis: 10_000,
  requestMillis: 30_000,
  // A payment may wait for the node.
  answerMillis: 300_000,
  stallMillis: 20_000,
  idleMillis: 30_000,
};

export type WalletServerOptions = {
  readonly listen: ListenAddress;
  readonly allowRemote: boolean;
  readonly token: string;
  /** Proxies on other machines whose x-forwarded-proto is trusted. */
  readonly proxies?: readonly string[];
  /** Host names it accepts, besides addresses and local names. */
  readonly hosts?: readonly string[];
};

/** Refusals before the call is parsed, as `error.code` of the body, with their HTTP status. */
export const WALLET_HTTP_ERRORS = {
  ...DOOR_ERRORS,
  not_found: 404,
  tls_required: 403,
  unauthorized: 401,
  method_not_allowed: 405,
  media_type_unsupported: 415,
  body_too_large: 413,
  too_many_requests: 429,
  too_busy: 503,
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
  readonly #door: Door;
  readonly #proxies: TrustedProxies;
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
    this.#refilled = wallet.steady();
    this.#proxies = new TrustedProxies(options.proxies ?? []);
    this.#sockets = new EventSockets(wallet, SERVER_LIMITS.sockets);
    this.#door = new Door(
      { name: 'wallet', limits: DOOR_LIMITS, hosts: options.hosts ?? [], origins: [], proxies: this.#proxies },
      {
        request: (request, response, target) => this.#serve(request, response, target),
        upgrade: (request, socket, head, target) => this.#upgrade(request, socket, head, target),
        words: (code, message) => words({ code, message }),
      },
      { log: wallet.log },
    );
  }

  start(): Promise<ListenAddress> {
    return this.#door.listen(this.#options.listen, { what: 'JSON-RPC' });
  }

  /** Calls in progress get their answer; a client that does not read it does not delay the shutdown. */
  async close(): Promise<void> {
    this.#sockets.close();
    await this.#door.close(5_000);
  }

  #answer(response: ServerResponse, body: unknown): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(200, {
      'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
    });
    response.end(text);
  }

  #refuse(response: ServerResponse, refusal: HttpRefusal): void {
    const { status, body } = words(refusal);
    // The rest of the body is not read.
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      connection: 'close',
    });
    response.end(body);
  }

  #refusalOf(request: IncomingMessage, { path, query }: Target, expected: string): HttpRefusal | undefined {
    if (path !== expected || query !== '')
      return { code: 'not_found', message: 'offered: POST /v1/rpc, GET /health, /v1/ws' };
    if (this.#options.allowRemote && !this.#isSecure(request))
      return {
        code: 'tls_required',
        message:
          'calls from other machines must come through a TLS proxy on this machine, or one listed with --trusted-proxy',
      };
    if (!this.#authorized(request.headers.authorization))
      return { code: 'unauthorized', message: 'Authorization: Bearer TOKEN is missing or wrong' };
    connectionOf(request.socket)?.keep();
    return undefined;
  }

  #isSecure({ headers, socket: { remoteAddress, localAddress } }: IncomingMessage): boolean {
    return isSecureCall({ remote: remoteAddress, local: localAddress, headers }, this.#proxies);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: Target): void {
    const refusal =
      this.#refusalOf(request, target, '/v1/ws') ??
      (this.#sockets.full ? ({ code: 'too_busy', message: 'too many sockets are open' } as const) : undefined);
    if (refusal !== undefined) refuseUpgrade(socket, words(refusal));
    else this.#sockets.accept(request, socket, head);
  }

  async #serve(request: IncomingMessage, response: ServerResponse, target: Target): Promise<void> {
    if (target.path === '/health' && request.method === 'GET') return this.#answer(response, 'ok');
    const refusal = this.#refusalOf(request, target, '/v1/rpc');
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
      if (body === 'incomplete') return;
      if (body === 'too_large')
        return this.#refuse(response, { code: 'body_too_large', message: `at most ${SERVER_LIMITS.bodyBytes} bytes` });
      const text = readText(body);
      if (text === undefined) return this.#answer(response, rpcError(null, RPC_ERRORS.parse, 'the body is not UTF-8'));
      const parsed = readRequest(text);
      this.#answer(response, 'jsonrpc' in parsed ? parsed : await dispatch(this.#wallet, parsed));
    } finally {
      this.#inProgress--;
    }
  }

  /** Takes one call from the allowance; otherwise returns how long to wait. */
  #take(): number {
    const now = this.#wallet.steady();
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

const decoder = new TextDecoder('utf-8', { fatal: true });

function readText(body: Buffer): string | undefined {
  try {
    return decoder.decode(body);
  } catch {
    return undefined;
  }
}

const words = ({ code, message, retryMillis }: HttpRefusal): Words => ({
  status: WALLET_HTTP_ERRORS[code],
  type: 'application/json',
  body: JSON.stringify({
    error: { code, message },
    ...(retryMillis === undefined ? {} : { retry_after_millis: retryMillis }),
  }),
});
