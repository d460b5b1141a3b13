/**
 * The WebSockets of the public API: who may open one (path, subprotocol, origin, readiness, allowance), what each carries, and the
 * pings that find readers who are gone. Compression is off: it would cost every connection memory and one event a copy each.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { CLOSE_CODES, type ResyncReason } from '../../protocol/api/frames.ts';
import { MAX_TARGET, SOCKETS } from '../../protocol/api/routes.ts';
import { integer, object, optional } from '../../protocol/api/schema.ts';
import { fromHex } from '../../protocol/bytes.ts';
import type { Logger } from '../../runtime/log.ts';
import { CutFeed, CutReader } from '../events.ts';
import type { ApiContext } from './api-context.ts';
import { Refusal, refusal } from './api-error.ts';
import type { ApiLimits } from './api-limits.ts';
import { dispatch, NOT_READY_MILLIS } from './dispatch.ts';
import type { ApiHttp } from './http-server.ts';
import { LiveHub } from './live-hub.ts';
import { LiveConnection } from './live-socket.ts';
import { readQuery } from './route-match.ts';

export type SocketsOptions = {
  readonly limits: ApiLimits;
  readonly pingMillis?: number;
  readonly replayMillis?: number;
};
export type SocketsDependencies = {
  readonly http: ApiHttp;
  readonly context: () => ApiContext | undefined;
  readonly now: () => number;
  readonly log: Logger;
};

type Sources = { readonly context: ApiContext; readonly feed: CutFeed; readonly hub: LiveHub };
type Opening = { readonly subprotocol: string; readonly start: (socket: WebSocket) => void };

const eventsQuery = object({ after_height: optional(integer()) });
const STATUS_PATH = /^\/v1\/transactions\/([0-9a-f]{96})\/status\/stream$/;
const PING_MILLIS = 30_000;

export class ApiSockets {
  readonly #options: SocketsOptions;
  readonly #dependencies: SocketsDependencies;
  readonly #servers: Record<'stream' | 'live', WebSocketServer>;
  /** Whether each socket answered the last ping. */
  readonly #alive = new Map<WebSocket, boolean>();
  readonly #pinger: NodeJS.Timeout;
  readonly #live = new Set<LiveConnection>();
  #sources: Sources | undefined;

  constructor(options: SocketsOptions, dependencies: SocketsDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    const server = (maxPayload: number) =>
      new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload });
    this.#servers = { stream: server(1024), live: server(options.limits.socket.frameBytes) };
    dependencies.http.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
    this.#pinger = setInterval(() => this.#ping(), options.pingMillis ?? PING_MILLIS);
    this.#pinger.unref();
  }

  get open(): number {
    return this.#alive.size;
  }

  /** Feed and hub live as long as the node they listen to. */
  #ready(): Sources {
    const context = this.#dependencies.context();
    if (context === undefined) throw refusal('not_ready', 'the node is not ready to answer yet', {}, NOT_READY_MILLIS);
    if (this.#sources?.context !== context) {
      this.#endSources();
      const { replayMillis } = this.#options;
      const feed = new CutFeed(replayMillis === undefined ? {} : { replayMillis }, {
        node: context.node,
        now: this.#dependencies.now,
      });
      this.#sources = { context, feed, hub: new LiveHub(context) };
      for (const live of this.#live) live.restart(context, this.#sources.hub);
    }
    return this.#sources;
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    const { http } = this.#dependencies;
    try {
      const target = request.url ?? '';
      http.checkOrigin(request.headers.origin);
      if (target.length > MAX_TARGET) throw refusal('target_too_long', `a target has at most ${MAX_TARGET} characters`);
      http.allow(http.clientOf(request), 1);
      const opening = this.#opening(request, target);
      const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
      if (!offered.includes(opening.subprotocol))
        throw refusal('subprotocol_required', `this socket speaks the subprotocol ${opening.subprotocol}`);
      // Only the spoken one is left, so that is what the handshake answers with.
      request.headers['sec-websocket-protocol'] = opening.subprotocol;
      const server = opening.subprotocol === SOCKETS.live.subprotocol ? this.#servers.live : this.#servers.stream;
      server.handleUpgrade(request, socket, head, (opened) => {
        this.#keep(opened);
        opening.start(opened);
      });
    } catch (error) {
      if (!(error instanceof Refusal)) {
        this.#dependencies.log.error('a socket could not be opened', { target: request.url, error });
        socket.destroy();
        return;
      }
      const body = JSON.stringify(error.document);
      socket.end(
        `HTTP/1.1 ${error.status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n` +
          `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    }
  }

  #opening(request: IncomingMessage, target: string): Opening {
    const mark = target.indexOf('?');
    const path = mark < 0 ? target : target.slice(0, mark);
    const query = mark < 0 ? '' : target.slice(mark + 1);
    if (path === SOCKETS.events.path) {
      const after = readQuery(eventsQuery, query).after_height as number | undefined;
      const { feed } = this.#ready();
      return {
        subprotocol: SOCKETS.events.subprotocol,
        start: (socket) => {
          takesNoFrames(socket);
          new CutReader(feed, socket, after);
        },
      };
    }
    if (path === SOCKETS.live.path) {
      readQuery(object({}), query);
      const { context, hub } = this.#ready();
      return {
        subprotocol: SOCKETS.live.subprotocol,
        start: (socket) => this.#openLive(socket, request, context, hub),
      };
    }
    const id = STATUS_PATH.exec(path)?.[1];
    if (id === undefined) throw refusal('route_unknown', 'there is no such socket; GET / lists them');
    readQuery(object({}), query);
    const { context, hub } = this.#ready();
    if (context.node.transactionStatus(fromHex(id)) === undefined)
      throw refusal('transaction_unknown', 'this server has not seen the transaction');
    return {
      subprotocol: SOCKETS.transactionStatus.subprotocol,
      start: (socket) => streamStatus(socket, id, hub),
    };
  }

  #openLive(socket: WebSocket, request: IncomingMessage, context: ApiContext, hub: LiveHub): void {
    const { http, now } = this.#dependencies;
    const client = http.clientOf(request);
    const read = (target: string) =>
      dispatch(
        { method: 'GET', target, body: new Uint8Array(0) },
        (cost) => http.allow(client, cost),
        this.#dependencies,
      );
    const live = new LiveConnection(socket, this.#options.limits, { context, hub, read, now });
    this.#live.add(live);
    socket.on('close', () => this.#live.delete(live));
  }

  #keep(socket: WebSocket): void {
    this.#alive.set(socket, true);
    socket.on('pong', () => this.#alive.set(socket, true));
    socket.on('close', () => this.#alive.delete(socket));
    // The close that follows is all there is to do about a broken connection or frame.
    socket.on('error', () => undefined);
  }

  #ping(): void {
    for (const [socket, answered] of this.#alive) {
      if (!answered) {
        socket.terminate();
        continue;
      }
      this.#alive.set(socket, false);
      socket.ping();
    }
  }

  /** The node behind the API changed: streams of cuts end, subscriptions go on with the new one. */
  restarted(): void {
    this.#endSources('stream_restarted');
    if (this.#dependencies.context() !== undefined && this.#live.size > 0) this.#ready();
  }

  #endSources(reason?: ResyncReason): void {
    this.#sources?.feed.close(reason);
    this.#sources?.hub.close();
    this.#sources = undefined;
  }

  close(): void {
    clearInterval(this.#pinger);
    this.#endSources();
    for (const socket of this.#alive.keys()) socket.close(CLOSE_CODES.goingAway, 'the node is stopping');
    // A reader that does not answer the close is not waited for.
    setTimeout(() => {
      for (const socket of this.#alive.keys()) socket.terminate();
    }, 1_000).unref();
  }
}

function takesNoFrames(socket: WebSocket): void {
  socket.on('message', () => socket.close(CLOSE_CODES.wrongFrame, 'this socket takes no frames'));
}

/** Statuses are few and small: a reader that stops reading is found by the pings. */
function streamStatus(socket: WebSocket, id: string, hub: LiveHub): void {
  takesNoFrames(socket);
  let type = 'snapshot';
  let stop: (() => void) | undefined;
  const tell = (status: string, final: boolean): void => {
    socket.send(`{"type":"${type}","data":${status}}`);
    type = 'update';
    if (final) {
      stop?.();
      socket.close(CLOSE_CODES.done, 'final');
    }
  };
  stop = hub.watchTransaction(id, tell);
  socket.on('close', stop);
}
