/**
 * The WebSockets of the public API: who may open one (path, subprotocol, readiness, allowance) and what each carries.
 * Handshakes, pings and limits per client are in runtime/door/web-sockets.ts.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { CLOSE_CODES, type ResyncReason } from '../../protocol/api/frames.ts';
import { MAX_TARGET, SOCKETS } from '../../protocol/api/routes.ts';
import { integer, object, optional } from '../../protocol/api/schema.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { ClientParts } from '../../runtime/clients/client-parts.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { refuseUpgrade } from '../../runtime/door/door.ts';
import type { Target } from '../../runtime/door/target.ts';
import { protocolsOf, WebSockets } from '../../runtime/door/web-sockets.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { CutFeed, CutReader } from '../events.ts';
import type { ApiContext } from './api-context.ts';
import { Refusal, refusal } from './api-error.ts';
import type { ApiLimits } from './api-limits.ts';
import { NOT_READY_MILLIS } from './dispatch.ts';
import { type ApiHttp, wordsOf } from './http-server.ts';
import { LiveHub } from './live-hub.ts';
import { LiveConnection } from './live-socket.ts';
import { RateLimiter } from './rate-limit.ts';
import { readQuery } from './route-match.ts';

export type SocketsOptions = {
  readonly limits: ApiLimits;
  readonly pingMillis?: number;
  readonly replayMillis?: number;
};
export type SocketsDependencies = {
  readonly context: () => ApiContext | undefined;
  readonly now: SteadyClock;
  readonly log: Logger;
};

type Sources = { readonly context: ApiContext; readonly feed: CutFeed; readonly hub: LiveHub };
type Opening = { readonly subprotocol: string; readonly start: (socket: WebSocket) => void };

const eventsQuery = object({ after_height: optional(integer()) });
const STATUS_PATH = /^\/v1\/transactions\/([0-9a-f]{96})\/status\/stream$/;
const PING_MILLIS = 30_000;
/** Of a replay: the price of `GET /v1/cuts`. */
const CUTS_PER_UNIT = 8;

export class ApiSockets {
  readonly #options: SocketsOptions;
  readonly #dependencies: SocketsDependencies;
  readonly #sockets: Record<'stream' | 'live', WebSockets>;
  readonly #live = new Set<LiveConnection>();
  readonly #notices: RateLimiter;
  readonly #watched: ClientParts;
  #sources: Sources | undefined;

  constructor(options: SocketsOptions, dependencies: SocketsDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#notices = new RateLimiter(options.limits.notices);
    this.#watched = new ClientParts(options.limits.watchedAddresses);
    const sockets = (frameBytes: number) =>
      new WebSockets(
        {
          name: 'api',
          frameBytes,
          perClient: options.limits.connectionsPerClient,
          pingMillis: options.pingMillis ?? PING_MILLIS,
        },
        dependencies,
      );
    this.#sockets = { stream: sockets(1024), live: sockets(options.limits.socket.frameBytes) };
  }

  get open(): number {
    return this.#sockets.stream.open + this.#sockets.live.open;
  }

  /** Feed and hub live as long as the node they listen to. */
  #ready(): Sources {
    const context = this.#dependencies.context();
    if (context === undefined) throw refusal('not_ready', 'the node is not ready to answer yet', {}, NOT_READY_MILLIS);
    if (this.#sources?.context !== context) {
      this.#endSources();
      const { replayMillis } = this.#options;
      const feed = new CutFeed(replayMillis === undefined ? {} : { replayMillis }, { node: context.node });
      this.#sources = { context, feed, hub: new LiveHub(context) };
      for (const live of this.#live) live.restart(context, this.#sources.hub);
    }
    return this.#sources;
  }

  upgrade(http: ApiHttp, request: IncomingMessage, socket: Duplex, head: Buffer, target: Target): void {
    try {
      if ((request.url ?? '').length > MAX_TARGET)
        throw refusal('target_too_long', `a target has at most ${MAX_TARGET} characters`);
      const client = http.clientOf(request);
      http.allow(client, 1);
      const { subprotocol, start } = this.#opening(http, client, target);
      if (!protocolsOf(request).includes(subprotocol))
        throw refusal('subprotocol_required', `this socket speaks the subprotocol ${subprotocol}`);
      const sockets = subprotocol === SOCKETS.live.subprotocol ? this.#sockets.live : this.#sockets.stream;
      if (sockets.isFull(client)) throw refusal('too_busy', 'this address holds as many sockets as it may', {}, 10_000);
      sockets.accept(request, socket, head, { client, protocol: subprotocol }, start);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuseUpgrade(socket, wordsOf(error));
    }
  }

  #opening(http: ApiHttp, client: string, { path, query }: Target): Opening {
    if (path === SOCKETS.events.path) {
      const after = readQuery(eventsQuery, query).after_height as number | undefined;
      const { feed } = this.#ready();
      return {
        subprotocol: SOCKETS.events.subprotocol,
        start: (socket) => {
          takesNoFrames(socket);
          if (after !== undefined && feed.reaches(after)) http.owe(client, (feed.height() - after) / CUTS_PER_UNIT);
          new CutReader(feed, socket, after);
        },
      };
    }
    if (path === SOCKETS.live.path) {
      readQuery(object({}), query);
      const { context, hub } = this.#ready();
      return {
        subprotocol: SOCKETS.live.subprotocol,
        start: (socket) => this.#openLive(socket, http, client, context, hub),
      };
    }
    const id = STATUS_PATH.exec(path)?.[1];
    if (id === undefined) throw refusal('route_unknown', 'there is no such socket; GET / lists them');
    readQuery(object({}), query);
    const { context, hub } = this.#ready();
    if (context.node.chain.transactionStatus(fromHex(id)) === undefined)
      throw refusal('transaction_unknown', 'this server has not seen the transaction');
    return {
      subprotocol: SOCKETS.transactionStatus.subprotocol,
      start: (socket) => streamStatus(socket, id, hub),
    };
  }

  #openLive(socket: WebSocket, http: ApiHttp, client: string, context: ApiContext, hub: LiveHub): void {
    const { now } = this.#dependencies;
    const caller = http.caller(client);
    const read = (target: string) => http.read(target, caller);
    const { allow } = caller;
    const notices = {
      take: () => this.#notices.take(client, 1, now()).ok,
      owe: (units: number) => this.#notices.charge(client, units, now()),
    };
    const watched = {
      take: (count: number) => this.#watched.take(client, count),
      giveBack: (count: number) => this.#watched.giveBack(client, count),
    };
    const turn = () => http.turn(client);
    const dependencies = { context, hub, read, allow, notices, watched, turn, now };
    const live = new LiveConnection(socket, this.#options.limits, dependencies);
    this.#live.add(live);
    socket.on('close', () => this.#live.delete(live));
  }

  /** The node behind the API changed: streams of cuts end, subscriptions continue with the new one. */
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
    this.#endSources();
    for (const sockets of Object.values(this.#sockets)) sockets.close(CLOSE_CODES.goingAway, 'the node is stopping');
  }
}

function takesNoFrames(socket: WebSocket): void {
  socket.on('message', () => socket.close(CLOSE_CODES.wrongFrame, 'this socket takes no frames'));
}

/** Statuses are few and small: pings detect a reader that stops reading. */
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
