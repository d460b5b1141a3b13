/**
 * The WebSockets of a door: the handshake, how many one client may hold, pings that detect dead clients, limits for
 * frames that are free for a client to send, and handling of errors while one of them is served. Compression is never
 * offered: it would cost every connection memory.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { clientFaults } from '../clients/client-fault.ts';
import type { Logger } from '../log/log.ts';
import { connectionOf } from './connection.ts';
import { refuseUpgrade } from './door.ts';

export type WebSocketsOptions = {
  /** In log lines and metrics. */
  readonly name: string;
  /** Of a frame that a client sends. */
  readonly frameBytes: number;
  /** Concurrent WebSockets, in total and per client; absent if they are counted elsewhere. */
  readonly most?: number;
  readonly perClient?: number;
  /** How often each is pinged; one that has not answered by the next is terminated. Without it they are not pinged. */
  readonly pingMillis?: number;
};

export type Opening = {
  /** Under which name it is counted. */
  readonly client: string;
  /** The subprotocol that is spoken, of those that were offered. */
  readonly protocol?: string;
};

/** The subprotocols that a client offers. */
export const protocolsOf = ({ headers }: IncomingMessage): string[] =>
  (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** What a client gets to answer a close; then its socket is destroyed. */
const CLOSE_MILLIS = 5_000;
/** The same when the program stops. */
const STOP_MILLIS = 1_000;

/** Pings and pongs that a client may send in a second. A program sends one in some seconds; each has to be read and a ping answered. */
const CONTROLS_PER_SECOND = 50;
/** Fragments of one message: each is a separate object until the last has arrived. */
const MAX_FRAGMENTS = 64;
/**
 * Unsent bytes up to which a ping is answered. A client that does not read gets no pongs, because they would accumulate
 * here.
 */
const PONG_BYTES = 64 * 1024;

export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #log: Pick<Logger, 'error'>;
  readonly #server: WebSocketServer;
  /** Whether each answered the last ping. */
  readonly #alive = new Map<WebSocket, boolean>();
  readonly #byClient = new Map<string, number>();
  readonly #pinger: NodeJS.Timeout | undefined;

  constructor(options: WebSocketsOptions, { log }: { readonly log: Pick<Logger, 'error'> }) {
    this.#options = options;
    this.#log = log;
    const failed = (socket: WebSocket, error: unknown): void => this.#failed(socket, error);
    class GuardedSocket extends WebSocket {
      #controls = 0;
      #controlsSince = 0;

      /** Counts a ping or pong; says whether the connection is still to be served. */
      #control(): boolean {
        if (this.readyState !== WebSocket.OPEN) return false;
        const now = performance.now();
        if (now - this.#controlsSince >= 1_000) {
          this.#controls = 0;
          this.#controlsSince = now;
        }
        if (++this.#controls <= CONTROLS_PER_SECOND) return true;
        this.terminate();
        return false;
      }

      // An error that a listener throws ends this client only.
      override emit(event: string | symbol, ...args: unknown[]): boolean {
        try {
          if ((event === 'ping' || event === 'pong') && !this.#control()) return true;
          if (event === 'ping' && this.bufferedAmount <= PONG_BYTES) this.pong(args[0] as Buffer, false, ignore);
          return super.emit(event as 'message', ...(args as [Buffer, boolean]));
        } catch (error) {
          failed(this, error);
          return true;
        }
      }
    }
    const settings = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: options.frameBytes,
      maxFragments: MAX_FRAGMENTS,
      // Answered above, within limits.
      autoPong: false,
      closeTimeout: CLOSE_MILLIS,
      WebSocket: GuardedSocket,
    };
    this.#server = new WebSocketServer(settings);
    this.#server.on('wsClientError', (error: Error, socket: Duplex) =>
      refuseUpgrade(socket, { status: 400, type: 'text/plain; charset=utf-8', body: `${error.message}\n` }),
    );
    if (options.pingMillis === undefined) return;
    this.#pinger = setInterval(() => this.#ping(), options.pingMillis);
    this.#pinger.unref();
  }

  /** Those that are pinged. */
  get open(): number {
    return this.#alive.size;
  }

  /** Whether there is no place for one more of this client. */
  isFull(client: string): boolean {
    const { most = Number.POSITIVE_INFINITY, perClient = Number.POSITIVE_INFINITY } = this.#options;
    return this.#alive.size >= most || (this.#byClient.get(client) ?? 0) >= perClient;
  }

  /** Answers the handshake and passes the open socket to `start`; an invalid handshake is refused. */
  accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    { client, protocol }: Opening,
    start: (opened: WebSocket) => void,
  ): void {
    // Only the spoken one is left, so that is what the handshake answers with.
    if (protocol === undefined) delete request.headers['sec-websocket-protocol'];
    else request.headers['sec-websocket-protocol'] = protocol;
    this.#server.handleUpgrade(request, socket, Buffer.from(head), (opened) => {
      connectionOf(socket)?.open();
      // A broken frame is answered with a close by the library, and a broken connection is closed: nothing is left to do.
      opened.on('error', ignore);
      if (this.#pinger !== undefined) this.#keep(opened);
      if (this.#options.perClient !== undefined) this.#count(opened, client);
      try {
        start(opened);
      } catch (error) {
        this.#failed(opened, error);
      }
    });
  }

  #keep(opened: WebSocket): void {
    this.#alive.set(opened, true);
    opened.on('pong', () => this.#alive.set(opened, true));
    opened.on('close', () => this.#alive.delete(opened));
  }

  #count(opened: WebSocket, client: string): void {
    this.#byClient.set(client, (this.#byClient.get(client) ?? 0) + 1);
    opened.on('close', () => {
      const left = (this.#byClient.get(client) ?? 1) - 1;
      if (left === 0) this.#byClient.delete(client);
      else this.#byClient.set(client, left);
    });
  }

  #failed(socket: WebSocket, error: unknown): void {
    socket.terminate();
    clientFaults.report(this.#options.name, error, this.#log);
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

  /** A reader that does not answer the close is not waited for. */
  close(code: number, reason: string): void {
    clearInterval(this.#pinger);
    for (const socket of this.#alive.keys()) socket.close(code, reason);
    setTimeout(() => {
      for (const socket of this.#alive.keys()) socket.terminate();
    }, STOP_MILLIS).unref();
  }
}

const ignore = (): void => undefined;
