/**
 * The HTTP listener ("door") of all programs; differences between them are passed in. It owns every socket from its
 * first moment to its last: counts it before anything is read, listens for its errors, reads its request line without a
 * throw, checks Host and Origin, limits the time of heads, bodies, answers and idleness, and destroys what it refuses.
 * An error in the handling of a client ends that client (client-fault.ts).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { clientKey, type TrustedProxies } from '../clients/client-address.ts';
import { clientFaults } from '../clients/client-fault.ts';
import { isSameMachine } from '../clients/same-machine.ts';
import { type MonotonicClock, monotonicMillis } from '../clock/clock.ts';
import type { ListenAddress } from '../command-line/command-line.ts';
import { listenHost } from '../listen-address.ts';
import type { Logger } from '../log/log.ts';
import { listenError } from '../runtime-error.ts';
import { hasBody } from './body.ts';
import { ClientTurns } from './client-turns.ts';
import { Connection, connectionOf } from './connection.ts';
import { admitsHost, hostNameOf } from './host-name.ts';
import { headAndBody, lastWords, type Words } from './last-words.ts';
import { Opened } from './opened.ts';
import { type HeadFault, limitPackets, MAX_HEADERS } from './packet-limit.ts';
import { ClientPlaces, type PlaceLimits, type Places } from './places.ts';
import { readTarget, type Target } from './target.ts';
import { Waiting } from './waiting.ts';

/** Refusals of the listener itself, with their HTTP status. */
export const DOOR_ERRORS = {
  bad_request: 400,
  origin_refused: 403,
  request_timeout: 408,
  host_refused: 421,
  headers_too_large: 431,
  internal: 500,
} as const;
export type DoorErrorCode = keyof typeof DOOR_ERRORS;

export type DoorLimits = PlaceLimits & {
  readonly headBytes: number;
  /** Maximum size of a request's body; 0 if none is accepted. */
  readonly bodyBytes: number;
  /** Time until a request's head is complete, and until all of it is. */
  readonly headMillis: number;
  readonly requestMillis: number;
  /** Time from a request's head until the client has received the whole answer. */
  readonly answerMillis: number;
  /** A client that reads nothing of an answer for this long is disconnected. */
  readonly stallMillis: number;
  /** Between two requests. */
  readonly idleMillis: number;
  /** Of unfinished requests, and of answers that clients have not taken yet, all together; without it they are not bounded. */
  readonly heldBytes?: number;
};

/** For listeners that serve a few programs with small answers. */
export const SMALL_DOOR: DoorLimits = {
  connections: 64,
  reserved: 16,
  headBytes: 8_192,
  bodyBytes: 0,
  headMillis: 5_000,
  requestMillis: 5_000,
  answerMillis: 30_000,
  stallMillis: 10_000,
  idleMillis: 60_000,
};

export type DoorOptions = {
  /** In log lines and metrics: `api`, `mining`. */
  readonly name: string;
  readonly limits: DoorLimits;
  /** Host names it accepts, besides addresses and local names (host-name.ts); null: all names are allowed. */
  readonly hosts: readonly string[] | null;
  /** Web origins that are admitted; null: the handlers judge them. */
  readonly origins: readonly string[] | null;
  /** Proxies that may name their clients; `hosts` does not apply to them. */
  readonly proxies?: TrustedProxies;
  /** Requests are begun in turn between clients (client-turns.ts): for a listener that strangers use. */
  readonly inTurns?: boolean;
};

export type DoorHandlers = {
  request(request: IncomingMessage, response: ServerResponse, target: Target): void | Promise<void>;
  /** Opens a WebSocket (web-sockets.ts) or refuses it. Without it nothing is ever upgraded. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, target: Target): void;
  /** The answer to a refused request; plain text by default. */
  words?(code: DoorErrorCode, message: string): Words;
};

export type DoorDependencies = {
  readonly log: Pick<Logger, 'error'>;
  /** A count that several listeners share; its own count by default. */
  readonly places?: Places;
  /** Milliseconds of a steady clock. */
  readonly now?: MonotonicClock;
};

export type ListenOptions = {
  /** The purpose of the address, for the error if it is in use. */
  readonly what: string;
  readonly backlog?: number;
  readonly reusePort?: boolean;
};

const plainWords = (code: DoorErrorCode, message: string): Words => ({
  status: DOOR_ERRORS[code],
  type: 'text/plain; charset=utf-8',
  body: `${message} [${code}]\n`,
});

const MESSAGES = {
  bad_request: 'this is not an HTTP request that can be answered',
  origin_refused: 'web pages of this origin are not served here',
  request_timeout: 'the request did not arrive in time',
  host_refused: 'this server does not answer to that host name',
  headers_too_large: 'the headers are too large',
  internal: 'the program failed to answer; nothing was wrong with the request',
} as const satisfies Record<DoorErrorCode, string>;

const UPGRADE_WITH_BODY = 'a request for a WebSocket has no body';

const LOOK_MILLIS = 1_000;
/** Where all places are taken, a connection that has waited this long for its client goes before any WebSocket. */
const IDLE_MILLIS = 1_000;
/** Requests of one connection without an answer. Hardly any program sends the next before it has the answer. */
const MAX_PIPELINED = 8;
/** How long a stop waits for requests that are being handled. */
const HANDLER_MILLIS = 2_000;

export class Door {
  readonly #options: DoorOptions;
  readonly #handlers: DoorHandlers;
  readonly #log: Pick<Logger, 'error'>;
  readonly #places: Places;
  readonly #now: MonotonicClock;
  readonly #server: Server;
  /** Requests that are being handled, also those whose client is gone: what they read must not be closed before they end. */
  readonly #running = new Set<Promise<void>>();
  readonly #connections = new Set<Connection>();
  /** Those and the WebSockets that some of them became. */
  readonly #all = new Set<Connection>();
  readonly #waiting = new Waiting<Connection>();
  readonly #opened = new Opened<Connection>();
  readonly #turns: ClientTurns | undefined;
  readonly #words: NonNullable<DoorHandlers['words']>;
  /** One timer for all sockets: there may be tens of thousands. */
  readonly #gone: (this: Socket) => void;
  #timer: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;
  #refused = 0;

  constructor(options: DoorOptions, handlers: DoorHandlers, dependencies: DoorDependencies) {
    const { limits, proxies } = options;
    this.#options = options;
    this.#handlers = handlers;
    this.#log = dependencies.log;
    this.#places = dependencies.places ?? new ClientPlaces(limits, proxies);
    this.#now = dependencies.now ?? monotonicMillis;
    this.#turns = options.inTurns === true ? new ClientTurns() : undefined;
    this.#words = handlers.words ?? plainWords;
    this.#gone = this.#whenGone();
    const server = createServer({
      requestTimeout: limits.requestMillis,
      headersTimeout: limits.headMillis,
      keepAliveTimeout: limits.idleMillis,
      connectionsCheckingInterval: Math.min(LOOK_MILLIS, limits.headMillis / 2),
      maxHeaderSize: limits.headBytes,
      noDelay: true,
    });
    this.#server = server;
    // A client that is done sending still gets the answers it asked for.
    Object.assign(server, { httpAllowHalfOpen: true, maxHeadersCount: MAX_HEADERS });
    server.on('connection', (socket: Socket) => this.#arrive(socket));
    server.on('request', (request, response) => this.#request(request, response));
    server.on('checkContinue', (request, response) => {
      // Expect: 100-continue. A body that is too large is refused before it is sent.
      if (Number(request.headers['content-length'] ?? 0) <= limits.bodyBytes) response.writeContinue();
      this.#request(request, response);
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.#unreadable(error, socket));
    if (handlers.upgrade !== undefined)
      server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
        this.#upgrade(request, socket, head),
      );
  }

  /** For a framework that brings its own routing and needs the server. */
  get server(): Server {
    return this.#server;
  }

  /** Current HTTP connections, and those refused or displaced because of limits. */
  get figures(): { readonly open: number; readonly refused: number } {
    return { open: this.#connections.size, refused: this.#refused };
  }

  listen(address: ListenAddress, { what, ...options }: ListenOptions): Promise<ListenAddress> {
    return new Promise((resolve, reject) => {
      const refuse = (error: Error): void => reject(listenError(what, address, error));
      this.#server.once('error', refuse);
      this.#server.listen({ ...listenHost(address.host), port: address.port, ...options }, () => {
        this.#server.off('error', refuse);
        // A connection that could not be accepted, for example for lack of descriptors, must not end the program.
        this.#server.on('error', () => this.#refused++);
        this.#timer = setInterval(() => this.#look(), LOOK_MILLIS);
        this.#timer.unref();
        resolve({ host: address.host, port: (this.#server.address() as AddressInfo).port });
      });
    });
  }

  /** Takes no more connections; answers under way get `graceMillis`. Opened WebSockets are closed by their owner. */
  close(graceMillis = 0): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      const end = (): void => {
        for (const connection of this.#connections) connection.socket.destroy();
      };
      const timer = setTimeout(end, graceMillis);
      this.#server.close(() => {
        clearTimeout(timer);
        clearInterval(this.#timer);
        const late = setTimeout(resolve, HANDLER_MILLIS);
        void Promise.allSettled(this.#running).then(() => {
          clearTimeout(late);
          resolve();
        });
      });
      if (graceMillis === 0) end();
      else for (const connection of this.#connections) if (!connection.isBusy) connection.socket.destroy();
    });
    return this.#closed;
  }

  #arrive(socket: Socket): void {
    socket.on('error', destroyThis);
    const { remoteAddress, localAddress = '' } = socket;
    // The peer may have disconnected before it was accepted.
    const place = remoteAddress === undefined ? undefined : this.#placeFor(remoteAddress, localAddress);
    if (place === undefined) {
      this.#refused++;
      socket.destroy();
      return;
    }
    const lists = { all: this.#connections, waiting: this.#waiting, opened: this.#opened, now: this.#now };
    limitPackets(socket, MAX_PIPELINED, (fault) => this.#refuseHead(socket, fault));
    this.#all.add(new Connection(socket, place, isSameMachine(remoteAddress, localAddress), lists));
    socket.on('close', this.#gone);
  }

  /** If all places are taken, the connection that has waited longest for its client is closed, or a WebSocket of a network that holds many. */
  #placeFor(remote: string, local: string): string | undefined {
    const place = this.#places.take(remote, local);
    if (place !== undefined || this.#places.isFull?.(remote, local) !== true) return place;
    const isNear = isSameMachine(remote, local);
    const longest = this.#waiting.longest(isNear);
    // Where WebSockets hold nearly all places, those who come would only displace each other.
    const isIdle = longest !== undefined && longest.waitedMillis > IDLE_MILLIS;
    const displaced = isIdle ? longest : (this.#opened.ofMany(clientKey(remote), isNear) ?? longest);
    if (displaced === undefined) return undefined;
    this.#displace(displaced);
    return this.#places.take(remote, local);
  }

  /** For an owner whose places are taken: closes the one that has waited longest for its client, if that is so long. Returns whether one was closed. */
  makeRoom(waitedMillis: number): boolean {
    const longest = this.#waiting.longest(true);
    if (longest === undefined || longest.waitedMillis < waitedMillis) return false;
    this.#displace(longest);
    return true;
  }

  #displace(connection: Connection): void {
    this.#refused++;
    connection.socket.off('close', this.#gone).destroy();
    this.#release(connection);
  }

  #release(connection: Connection): void {
    connection.handOver();
    this.#all.delete(connection);
    this.#places.giveBack(connection.place);
  }

  #whenGone(): (this: Socket) => void {
    const release = (connection: Connection): void => this.#release(connection);
    return function (this: Socket): void {
      const connection = connectionOf(this);
      if (connection !== undefined) release(connection);
    };
  }

  /** Destroys connections that exceed a time limit, also those that node:http would still keep. */
  #look(): void {
    for (const connection of this.#connections)
      if (connection.isOver(this.#options.limits)) connection.socket.destroy();
    this.#freeMemory();
  }

  /** Whoever asks slowly, or does not read the answer, fills the program's memory. The clients that hold most lose what they hold. */
  #freeMemory(): void {
    const { heldBytes = Number.POSITIVE_INFINITY } = this.#options.limits;
    const byClient = new Map<string, number>();
    let all = 0;
    const holding: { readonly connection: Connection; readonly bytes: number }[] = [];
    for (const connection of this.#all) {
      const bytes = connection.heldBytes;
      if (bytes === 0) continue;
      holding.push({ connection, bytes });
      byClient.set(connection.client, (byClient.get(connection.client) ?? 0) + bytes);
      all += bytes;
    }
    if (all <= heldBytes) return;
    const ofClient = ({ connection }: { readonly connection: Connection }) => byClient.get(connection.client) as number;
    for (const { connection, bytes } of holding.sort((a, b) => ofClient(b) - ofClient(a) || b.bytes - a.bytes)) {
      if (all <= heldBytes) return;
      all -= bytes;
      connection.socket.destroy();
    }
  }

  #request(request: IncomingMessage, response: ServerResponse): void {
    const connection = connectionOf(request.socket);
    if (connection === undefined || connection.isLeaving || connection.requests >= MAX_PIPELINED)
      return void request.socket.destroy();
    connection.begin(response);
    if (hasBody(request)) {
      connection.wait();
      request.once('end', () => connection.work());
      response.once('prefinish', () => {
        if (!request.complete) endBehindAnswer(request);
      });
    }
    response.once('prefinish', () => connection.wait());
    response.on('close', () => connection.done(response));
    response.on('error', () => response.destroy());
    this.#inTurn(request, request, () => this.#serve(request, response));
  }

  /** `held` closes when the client is gone before its turn. */
  #inTurn(request: IncomingMessage, held: IncomingMessage | Duplex, begin: () => void): void {
    const client = this.#clientOf(request);
    const connection = connectionOf(request.socket);
    if (connection !== undefined) connection.client = client;
    if (this.#turns === undefined) return void begin();
    held.once('close', this.#turns.add(client, begin));
  }

  #clientOf({ socket, headers }: IncomingMessage): string {
    const peer = socket.remoteAddress ?? '';
    return clientKey(this.#options.proxies?.clientOf(peer, headers['x-forwarded-for']) ?? peer);
  }

  /** The next turn of a client, for what comes after a request was begun: bodies and frames can end all at once. */
  async turn(client: string): Promise<void> {
    await new Promise<void>((resolve) => this.#turns?.add(client, resolve) ?? resolve());
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const target = readTarget(request.url);
    const refused = this.#refusalOf(request, target);
    if (refused !== undefined || target === undefined) {
      this.#answer(request, response, this.#worded(refused ?? 'bad_request', request));
      return;
    }
    try {
      const running = this.#handlers
        .request(request, response, target)
        ?.catch((error) => this.#failed(request, response, error));
      if (running !== undefined) this.#track(running);
    } catch (error) {
      this.#failed(request, response, error);
    }
  }

  #track(running: Promise<void>): void {
    this.#running.add(running);
    void running.then(() => this.#running.delete(running));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const connection = connectionOf(socket);
    // A response that is still being written would be mixed with the frames.
    if (connection === undefined || connection.isBusy) return void socket.destroy();
    connection.begin();
    this.#inTurn(request, socket, () => this.#serveUpgrade(request, socket, head));
  }

  #serveUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const target = readTarget(request.url);
    const refused = this.#refusalOf(request, target);
    if (refused !== undefined || target === undefined) {
      refuseUpgrade(socket, this.#worded(refused ?? 'bad_request', request));
      return;
    }
    try {
      this.#handlers.upgrade?.(request, socket, head, target);
    } catch (error) {
      clientFaults.report(this.#options.name, error, this.#log);
      socket.destroy();
    }
  }

  #refusalOf({ headers, socket }: IncomingMessage, target: Target | undefined): DoorErrorCode | undefined {
    const { hosts, origins, proxies } = this.#options;
    if (origins !== null && headers.origin !== undefined && !origins.includes(headers.origin)) return 'origin_refused';
    if (hosts !== null && !admitsHost(headers.host, hosts) && proxies?.has(socket.remoteAddress ?? '') !== true)
      return 'host_refused';
    return target === undefined ? 'bad_request' : undefined;
  }

  #worded(code: DoorErrorCode, { headers }: IncomingMessage): Words {
    const message =
      code === 'host_refused'
        ? `${MESSAGES[code]}: the operator can add --host-name ${hostNameOf(headers.host ?? '').slice(0, 253)}`
        : MESSAGES[code];
    return this.#words(code, message);
  }

  #answer(request: IncomingMessage, response: ServerResponse, { status, type, body }: Words): void {
    const headers: Record<string, string | number> = {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
    };
    // The rest of the body is not read, so the connection cannot be used again; nor is it after a malformed request.
    if (status === DOOR_ERRORS.bad_request || (hasBody(request) && !request.complete)) headers.connection = 'close';
    response.writeHead(status, headers).end(body);
  }

  /** An error that no handler expected. */
  #failed(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    clientFaults.report(this.#options.name, error, this.#log);
    if (response.headersSent || response.destroyed) {
      request.socket.destroy();
      return;
    }
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    response.shouldKeepAlive = false;
    this.#answer(request, response, this.#words('internal', MESSAGES.internal));
  }

  #refuseHead(socket: Socket, fault: HeadFault): void {
    const connection = connectionOf(socket);
    // An answer under way must not be mixed with another, and what follows a refused head is no request.
    if (connection === undefined || connection.isBusy || connection.isLeaving) socket.destroy();
    else if (fault === 'chunked_upgrade') refuseUpgrade(socket, this.#words('bad_request', UPGRADE_WITH_BODY));
    else refuseUpgrade(socket, this.#words('headers_too_large', MESSAGES.headers_too_large));
  }

  /** Input that node:http could not parse as a request, or not in time. */
  #unreadable(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = connectionOf(socket);
    if (connection?.isLeaving === true) return;
    // An error cannot be answered in the middle of another answer.
    if (connection === undefined || connection.isBusy || !socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const code =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? 'headers_too_large'
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? 'request_timeout'
          : 'bad_request';
    refuseUpgrade(socket, this.#words(code, MESSAGES[code]));
  }
}

function destroyThis(this: Socket): void {
  this.destroy();
}

/**
 * For a request that is answered before its body was sent: node:http would destroy the socket behind the answer, which
 * resets the connection, and who goes on sending then loses the answer that says why.
 */
function endBehindAnswer(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    connectionOf(socket)?.leave();
    lastWords(socket, '');
    request.resume();
  };
}

/** Answers a socket that gets no WebSocket, and ends it. */
export function refuseUpgrade(socket: Duplex, words: Words): void {
  connectionOf(socket)?.leave();
  lastWords(socket, headAndBody(words));
}
