/**
 * The web listener: API, metrics, dashboard, and the stratum WebSockets of the same origin, under one path prefix. Headers
 * of a proxy are trusted only from proxies the operator listed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { RateLimiter, type RateLimits } from '../../node/api/rate-limit.ts';
import { type Language, languageFor } from '../../protocol/languages.ts';
import { clientKey, TrustedProxies } from '../../runtime/clients/client-address.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { connectionOf } from '../../runtime/door/connection.ts';
import { Door, type DoorErrorCode, type DoorLimits, refuseUpgrade } from '../../runtime/door/door.ts';
import { isOwnOrigin } from '../../runtime/door/host-name.ts';
import type { Words } from '../../runtime/door/last-words.ts';
import type { Target } from '../../runtime/door/target.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Metrics } from '../../runtime/metrics/metrics.ts';
import { METRICS_CONTENT_TYPE } from '../../runtime/metrics/metrics-listener.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { ApiRefusal, type PoolApiErrorCode, wordsOf } from './api-error.ts';
import type { StatusDocument } from './documents.ts';
import { MAIL_CODE } from './miner/signed-routes.ts';
import { apiPage, openApiDocument } from './openapi.ts';
import type { OperatorToken } from './operator/operator-token.ts';
import { DownloadPlaces } from './public/download-places.ts';
import type { Downloads } from './public/downloads.ts';
import { FirstPage } from './public/first-page.ts';
import { loadStaticFiles, PAGE_HEADERS, type StaticFile } from './public/static-files.ts';
import { statusPage } from './public/status.ts';
import { COSTS, notJson, type Route, readRequest } from './route.ts';
import { Turns } from './turns.ts';

export type WebOptions = {
  readonly listen: ListenAddress;
  /** Path prefix, such as `/pool`; empty at the root. */
  readonly prefix: string;
  /** Proxies whose X-Forwarded-* headers are trusted. */
  readonly proxies: readonly string[];
  /** Folder of the dashboard. */
  readonly dashboard: string;
  readonly title: string;
  readonly version: string;
  readonly metrics: boolean;
  readonly rate: RateLimits;
  /** WEB_LIMITS, unless others are given. */
  readonly limits?: DoorLimits;
};

export type WebDependencies = {
  readonly routes: readonly Route[];
  readonly token: OperatorToken;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly now: SteadyClock;
  /** Takes over a stratum connection from the web listener, for the given client. */
  readonly stratum?: (service: string, request: IncomingMessage, socket: Duplex, head: Buffer, client: string) => void;
  readonly live: (request: IncomingMessage, socket: Duplex, head: Buffer, client: string) => void;
  readonly ready: () => boolean;
  /** Without it there are none. */
  readonly downloads?: Downloads;
  /** How the pool is; without it there is no status page. */
  readonly status?: (language?: Language) => Promise<StatusDocument>;
  /** The figures that the page comes with; without it the page asks for them. */
  readonly first?: () => { readonly name: string } | undefined;
};

export const API_BASE = '/api/v1';

/** Limits for public clients; a listed proxy may carry many of them. */
export const WEB_LIMITS: DoorLimits = {
  connections: 16_384,
  perClient: 256,
  reserved: 64,
  headBytes: 16_384,
  bodyBytes: 32 * 1024,
  headMillis: 10_000,
  requestMillis: 30_000,
  answerMillis: 120_000,
  stallMillis: 30_000,
  idleMillis: 75_000,
  heldBytes: 128 * 1024 * 1024,
};

/** Expensive requests of one client that may wait for the one in progress. */
const DEAR_WAITING = 32;
const DEAR_RETRY_MILLIS = 1_000;

/** A second. A client that takes less is cut off in the end, and may go on where it was. */
const SLOWEST_BYTES = 32_768;

/** Origins and hosts come from strangers: this many pairs are told of. */
const MAX_FOREIGN = 50;

const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data'];

export interface WebListener {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

export async function startWeb(options: WebOptions, dependencies: WebDependencies): Promise<WebListener> {
  const proxies = new TrustedProxies(options.proxies, {
    option: '--trusted-proxy',
    warn: (message, fields) => dependencies.log.warn(message, fields),
  });
  let route: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  const door = new Door(
    { name: 'web', limits: options.limits ?? WEB_LIMITS, hosts: null, origins: null, proxies, inTurns: true },
    {
      request: (request, response) => route?.(request, response),
      upgrade: (request, socket, head, target) => web.upgrade(request, socket, head, target),
      words: doorWords,
    },
    dependencies,
  );
  const app = Fastify({
    bodyLimit: WEB_LIMITS.bodyBytes,
    trustProxy: (address: string) => proxies.has(address),
    exposeHeadRoutes: true,
    routerOptions: { maxParamLength: 256 },
    serverFactory: (handler) => {
      route = handler;
      return door.server;
    },
    // Of the admission check.
    clientErrorHandler: () => undefined,
  });
  const web = new Web(app, options, dependencies, proxies, await loadStaticFiles(options.dashboard));
  web.install();
  await app.ready();
  return {
    address: await door.listen(options.listen, { what: 'the web' }),
    close: async () => {
      await door.close(1_000);
      await app.close();
    },
  };
}

class Web {
  readonly #app: FastifyInstance;
  readonly #options: WebOptions;
  readonly #dependencies: WebDependencies;
  readonly #foreign = new Set<string>();
  readonly #proxies: TrustedProxies;
  readonly #files: ReadonlyMap<string, StaticFile>;
  readonly #page: FirstPage | undefined;
  readonly #rate: RateLimiter;
  /** A separate limit: API readers behind the same address must not block the operator's monitoring. */
  readonly #metricsRate: RateLimiter;
  readonly #turns = new Turns({ most: DEAR_WAITING });
  /** By their answers: one connection may have asked for several. */
  readonly #downloads = new DownloadPlaces<ServerResponse>();

  constructor(
    app: FastifyInstance,
    options: WebOptions,
    dependencies: WebDependencies,
    proxies: TrustedProxies,
    files: ReadonlyMap<string, StaticFile>,
  ) {
    this.#app = app;
    this.#options = options;
    this.#dependencies = dependencies;
    this.#proxies = proxies;
    this.#files = files;
    const page = files.get('/');
    this.#page = page === undefined ? undefined : new FirstPage(page, () => dependencies.first?.());
    this.#rate = new RateLimiter(options.rate);
    this.#metricsRate = new RateLimiter(options.rate);
  }

  install(): void {
    const { prefix, title, version, metrics: withMetrics } = this.#options;
    const { routes, metrics, ready } = this.#dependencies;
    const app = this.#app;
    const base = `${prefix}${API_BASE}`;
    app.setErrorHandler((error, request, reply) => this.#failed(error, request, reply));
    app.setNotFoundHandler((request, reply) => this.#static(request, reply));
    for (const route of routes)
      app.route({
        method: route.method,
        url: `${base}${route.path}`,
        handler: (request, reply) => this.#serve(route, request, reply),
        onSend: async (request, _reply, payload) => {
          const length = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.length : 0;
          this.#charge(request, Math.floor(length / COSTS.bytes));
          return payload;
        },
      });
    const document = JSON.stringify(openApiDocument(routes, { title, version, base }));
    const page = apiPage(routes, { title, base });
    app.get(`${base}/openapi.json`, (_request, reply) => reply.type('application/json').send(document));
    app.get(`${base}/`, (_request, reply) => reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page));
    // Mail programs send a form; routes that take JSON refuse what is none.
    app.addContentTypeParser(FORMS, { parseAs: 'string' }, (_request, body, done) => done(null, body));
    // A person who opens the address that mail programs use gets the page of it, which asks.
    app.get<{ Params: { code: string } }>(`${base}/mail/stop/:code`, ({ params }, reply) => {
      if (!new RegExp(MAIL_CODE).test(params.code)) throw new ApiRefusal('not_found', 'there is nothing here');
      return reply.redirect(`../../../../#/mail/stop/${params.code}`, 303);
    });
    app.get(`${prefix}/health`, (_request, reply) => reply.type('text/plain').send('alive\n'));
    app.get(`${prefix}/ready`, (_request, reply) =>
      reply
        .code(ready() ? 200 : 503)
        .type('text/plain')
        .send(ready() ? 'ready\n' : 'not ready\n'),
    );
    const { status } = this.#dependencies;
    if (status !== undefined)
      app.get(`${prefix}/status`, async (request, reply) => {
        this.#take(request, 1);
        const { language: chosen } = request.query as Readonly<Record<string, unknown>>;
        const wanted = (request.headers['accept-language'] ?? '')
          .split(',')
          .map((one) => one.split(';')[0]?.trim() ?? '');
        const language = languageFor(typeof chosen === 'string' ? chosen : null, wanted);
        // The operator may have changed the name since the start.
        const page = statusPage(await status(language), this.#dependencies.first?.()?.name ?? title, language);
        return reply
          .headers(PAGE_HEADERS)
          .header('cache-control', 'no-store')
          .type('text/html; charset=utf-8')
          .send(page);
      });
    app.route<{ Params: { name: string } }>({
      method: ['GET', 'HEAD'],
      url: `${prefix}/downloads/:name`,
      handler: (request, reply) => this.#download(request.params.name, request, reply),
    });
    // Without metrics it is nothing, rather than a page of the dashboard.
    app.get(`${prefix}/metrics`, async (request, reply) => {
      this.#take(request, COSTS.search, this.#metricsRate);
      if (!withMetrics) throw new ApiRefusal('not_found', 'this pool serves no metrics');
      return reply.header('content-type', METRICS_CONTENT_TYPE).send(await metrics.text());
    });
  }

  async #serve(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { token } = this.#dependencies;
    reply.header('x-content-type-options', 'nosniff').header('cross-origin-resource-policy', 'same-origin');
    this.#take(request, route.cost ?? 1);
    if (route.operator === true) {
      reply.header('cache-control', 'no-store');
      if (!(await token.admits(request.headers.authorization)))
        throw new ApiRefusal('unauthorized', 'this route needs the operator token');
    }
    const input = readRequest(route, request);
    const charge = (units: number) => this.#charge(request, units);
    const client = clientKey(this.#clientOf(request.raw));
    const handle = () => route.handle(input, { request, reply, client, charge });
    return route.isDear === true ? this.#inTurn(request, handle) : handle();
  }

  /** The cost of an expensive request is known afterwards: the client's next one starts when the allowance covers it, or is refused. */
  async #inTurn(request: FastifyRequest, handle: () => Promise<unknown>): Promise<unknown> {
    const end = await this.#turns.take(clientKey(this.#clientOf(request.raw)));
    if (end === undefined) throw new ApiRefusal('too_many_requests', 'too many requests', DEAR_RETRY_MILLIS);
    try {
      // The client has disconnected.
      if (request.raw.socket.destroyed) throw new ApiRefusal('bad_request', 'the client is gone');
      this.#take(request, 0);
      return await handle();
    } finally {
      end();
    }
  }

  #take(request: FastifyRequest, cost: number, rate = this.#rate): void {
    const verdict = rate.take(clientKey(this.#clientOf(request.raw)), cost, this.#dependencies.now());
    if (!verdict.ok) throw new ApiRefusal('too_many_requests', 'too many requests', verdict.retryAfterMillis);
  }

  #charge(request: FastifyRequest, units: number): void {
    this.#rate.charge(clientKey(this.#clientOf(request.raw)), units, this.#dependencies.now());
  }

  #clientOf({ socket, headers }: IncomingMessage): string {
    return this.#proxies.clientOf(socket.remoteAddress ?? '', headers['x-forwarded-for']);
  }

  #failed(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const refusal = error instanceof ApiRefusal ? error : this.#translate(error, request);
    if (refusal.retryAfterMillis !== undefined)
      reply.header('retry-after', String(Math.ceil(refusal.retryAfterMillis / 1000)));
    return reply
      .code(refusal.status)
      .header('cache-control', 'no-store')
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(refusal.document));
  }

  #translate(error: unknown, request: FastifyRequest): ApiRefusal {
    const { statusCode, code, message } = error as { statusCode?: number; code?: string; message: string };
    if (statusCode === 415) return notJson();
    // Refusals by fastify itself: a body that is not JSON, or too large.
    if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
      return new ApiRefusal('bad_request', message);
    // 57014 and 55P03: it did not answer, or let go of a row, within its time.
    const isAway = /^(CONNECT|CONNECTION|ECONN|EPIPE|ENOTFOUND|57P0|57014|55P03|08)/.test(code ?? '');
    if (isAway) return new ApiRefusal('unavailable', 'the database is unavailable for the moment', 5_000);
    clientFaults.report(`web ${request.routeOptions.url}`, error, this.#dependencies.log);
    return new ApiRefusal('internal', 'internal error: see the log of the pool');
  }

  /** One file of the downloads, from the byte on that the client asks for: what broke off goes on there. */
  #download(name: string, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    this.#take(request, COSTS.search);
    const { downloads } = this.#dependencies;
    const file = downloads?.get(name);
    if (downloads === undefined || file === undefined) throw new ApiRefusal('not_found', 'there is no such file here');
    if (!downloads.isUnchanged(name))
      throw new ApiRefusal('unavailable', 'this file was changed: it is served again after the next start of the pool');
    const etag = `"${file.sha256}"`;
    const { range, 'if-range': ifRange = etag } = request.headers;
    const [, wanted] = /^bytes=(\d{1,15})-$/.exec(range ?? '') ?? [];
    const from = wanted === undefined || ifRange !== etag ? undefined : Number(wanted);
    reply
      .header('accept-ranges', 'bytes')
      .header('etag', etag)
      .header('cache-control', 'no-cache')
      .header('content-disposition', `attachment; filename="${name}"`)
      .header('x-content-type-options', 'nosniff')
      .header('cross-origin-resource-policy', 'same-origin')
      .type('application/octet-stream');
    if (from !== undefined && from >= file.bytes)
      return reply.code(416).header('content-range', `bytes */${file.bytes}`).send();
    if (from !== undefined) reply.code(206).header('content-range', `bytes ${from}-${file.bytes - 1}/${file.bytes}`);
    const bytes = file.bytes - (from ?? 0);
    reply.header('content-length', bytes);
    if (request.method === 'HEAD') return reply.send();
    this.#begin(request, reply, bytes);
    return reply.send(downloads.read(name, from ?? 0));
  }

  #begin(request: FastifyRequest, reply: FastifyReply, bytes: number): void {
    const client = clientKey(this.#clientOf(request.raw));
    if (!this.#downloads.hasRoom(client))
      throw new ApiRefusal('too_many_requests', 'too many downloads at a time', DEAR_RETRY_MILLIS);
    this.#downloads.take(reply.raw, client)?.destroy();
    reply.raw.once('close', () => this.#downloads.giveBack(reply.raw));
    connectionOf(request.raw.socket)?.mayTakeLonger((bytes / SLOWEST_BYTES) * 1_000);
  }

  /** The dashboard: files by name, and its page for every other path, since routing is done in the browser. */
  #static(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { prefix } = this.#options;
    const path = (request.url.split('?')[0] as string).replace(/\/+$/, '') || '/';
    const below = path === prefix ? '/' : path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined;
    const isPage = request.method === 'GET' || request.method === 'HEAD';
    if (!isPage || below === undefined || below.startsWith('/api/'))
      throw new ApiRefusal('not_found', 'there is nothing here');
    // The page names its files relative to itself: `/explorer/` must be `/explorer`, and the prefix alone needs its slash.
    const endsInSlash = /\/(\?|$)/.test(request.url);
    if (/^\/[a-z]+$/.test(below) && endsInSlash) return reply.redirect(path, 308);
    if (prefix !== '' && below === '/' && !endsInSlash) return reply.redirect(`${prefix}/`, 308);
    const found = this.#files.get(below) ?? (/\.\w+$/.test(below) ? undefined : this.#files.get('/'));
    const file = found === this.#files.get('/') ? this.#page?.page : found;
    if (file === undefined) throw new ApiRefusal('not_found', 'there is nothing here');
    reply
      .headers(PAGE_HEADERS)
      .header('etag', file.etag)
      .header('cache-control', file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
      .type(file.type);
    if (request.headers['if-none-match'] === file.etag) return reply.code(304).send();
    if (file.brotli !== undefined && /\bbr\b/.test(request.headers['accept-encoding'] ?? ''))
      return reply.code(200).header('content-encoding', 'br').header('vary', 'accept-encoding').send(file.brotli);
    return reply.code(200).send(file.body);
  }

  /** Once for each pair: a proxy that does not pass the Host on makes the pool's own page a stranger's. */
  #tellForeign(origin: string | undefined, host: string | undefined): void {
    const pair = `${origin} ${host}`;
    if (this.#foreign.has(pair) || this.#foreign.size >= MAX_FOREIGN) return;
    this.#foreign.add(pair);
    this.#dependencies.log.warn('a page of another origin wants a WebSocket', {
      origin,
      host: host ?? 'none',
      remedy: 'if it is the page of this pool, let the proxy pass the Host on with its port ($http_host)',
    });
  }

  /** WebSockets of the dashboard's own page. Its origin is this listener, so it need not be on the list of origins. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, { path }: Target): void {
    const { prefix } = this.#options;
    const { stratum, live } = this.#dependencies;
    const { origin, host } = request.headers;
    const peer = request.socket.remoteAddress ?? '';
    const forwarded = this.#proxies.has(peer) ? request.headers['x-forwarded-host'] : undefined;
    const isOwn = isOwnOrigin(origin, typeof forwarded === 'string' ? forwarded : host);
    const client = this.#clientOf(request);
    if (path === `${prefix}${API_BASE}/live` && isOwn) {
      live(request, socket, head, clientKey(client));
      return;
    }
    if (!isOwn) this.#tellForeign(origin, typeof forwarded === 'string' ? forwarded : host);
    if (path === `${prefix}${API_BASE}/live`) {
      refuseUpgrade(socket, wordsOf(new ApiRefusal('forbidden', 'web pages of this origin are not served here')));
      return;
    }
    const service = SERVICES.find((name) => path === `${prefix}/stratum/${name}`);
    if (service === undefined || stratum === undefined) {
      refuseUpgrade(socket, wordsOf(new ApiRefusal('not_found', 'there is nothing here')));
      return;
    }
    // Behind a proxy that does not forward client addresses, all clients would share one limit and one ban.
    if (this.#proxies.hidesClients(peer, request.headers['x-forwarded-for'])) {
      refuseUpgrade(socket, wordsOf(new ApiRefusal('bad_request', 'the proxy does not say who its client is')));
      return;
    }
    // The stratum server admits browsers by a list of origins; this one need not be on it.
    if (isOwn) delete request.headers.origin;
    stratum(service, request, socket, head, client);
  }
}

/** Host names and origins are not restricted here: the pool is public. */
const DOOR_WORDS = {
  bad_request: 'bad_request',
  origin_refused: 'forbidden',
  request_timeout: 'request_timeout',
  host_refused: 'forbidden',
  headers_too_large: 'headers_too_large',
  internal: 'internal',
} as const satisfies Record<DoorErrorCode, PoolApiErrorCode>;
const doorWords = (code: DoorErrorCode, message: string): Words => wordsOf(new ApiRefusal(DOOR_WORDS[code], message));
