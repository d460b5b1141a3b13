/**
 * Stratum over WebSocket (S4): both subprotocols, one message per frame. Origins other than the operator's are refused, and
 * a frame of the wrong kind ends the connection. Compression is never offered: a job does not compress, and its state
 * would cost more than the whole connection.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import type { Bytes } from '../../protocol/bytes.ts';
import { MAX_LINE_BYTES } from '../../protocol/stratum/line.ts';
import { PROTOCOL_V1, PROTOCOL_V2 } from '../../protocol/stratum/messages.ts';
import { clientKey, type TrustedProxies } from '../../runtime/clients/client-address.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { type Connection, connectionOf } from '../../runtime/door/connection.ts';
import { Door, type ListenOptions, refuseUpgrade } from '../../runtime/door/door.ts';
import type { Places } from '../../runtime/door/places.ts';
import { protocolsOf, WebSockets } from '../../runtime/door/web-sockets.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { StratumService } from '../service.ts';
import type { Conversation } from './conversation.ts';
import type { Desk } from './desk.ts';
import { WebSocketPeer } from './peers.ts';

export type StratumSocketsDependencies = {
  readonly desk: Desk;
  readonly log: Pick<Logger, 'error'>;
  readonly origins: readonly string[];
  readonly proxies: TrustedProxies;
  /** The count of all connections of this server, by client. */
  readonly places: Places & { add(key: string): void };
  /** Whether one more of this client may be counted. */
  readonly admit: (address: string, isCounted: boolean) => boolean;
  /** A WebSocket was opened (1) or closed (-1). */
  readonly count: (amount: 1 | -1) => void;
};

const NAME = 'stratum-ws';
const CONVERSATION = Symbol('conversation');
type StratumSocket = WebSocket & { [CONVERSATION]?: Conversation };

export class StratumSockets {
  readonly #dependencies: StratumSocketsDependencies;
  readonly #sockets: WebSockets;
  readonly #doors: Door[] = [];

  constructor(dependencies: StratumSocketsDependencies) {
    this.#dependencies = dependencies;
    this.#sockets = new WebSockets({ name: NAME, frameBytes: MAX_LINE_BYTES }, dependencies);
  }

  /** Connections refused because of a limit. */
  get refused(): number {
    return this.#doors.reduce((sum, door) => sum + door.figures.refused, 0);
  }

  listen(service: StratumService, address: ListenAddress, options: ListenOptions): Promise<ListenAddress> {
    const { desk, log, places } = this.#dependencies;
    const { connections, connectionsPerAddress: perClient, loginMillis } = desk.limits;
    const door = new Door(
      {
        name: NAME,
        limits: {
          connections,
          perClient,
          headBytes: 16_384,
          bodyBytes: 0,
          headMillis: loginMillis,
          requestMillis: loginMillis,
          answerMillis: loginMillis,
          stallMillis: loginMillis,
          // Plain HTTP requests do not belong on this port.
          idleMillis: 1_000,
        },
        hosts: null,
        origins: null,
      },
      {
        request: (_request, response) =>
          void response
            .writeHead(426, { upgrade: 'websocket', connection: 'close' })
            .end('this port speaks WebSocket\n'),
        upgrade: (request, socket, head) => this.upgrade(service, request, socket, head),
      },
      { log, places, now: () => desk.now() },
    );
    this.#doors.push(door);
    return door.listen(address, options);
  }

  /** Ends a connection that has not asked for a WebSocket in this time. Returns false where there is none. */
  makeRoom(silentMillis: number): boolean {
    return this.#doors.some((door) => door.makeRoom(silentMillis));
  }

  async close(): Promise<void> {
    await Promise.all(this.#doors.map((door) => door.close()));
  }

  /** `client`: the address, if the web server that accepted the request determined it; that server counts it itself. */
  upgrade(service: StratumService, request: IncomingMessage, socket: Duplex, head: Bytes, client?: string): void {
    const { origins, proxies, admit } = this.#dependencies;
    const remote = request.socket.remoteAddress;
    if (remote === undefined) return void socket.destroy();
    const { origin } = request.headers;
    if (origin !== undefined && !origins.includes(origin)) {
      refuse(socket, 403, 'web pages of this origin are not served here');
      return;
    }
    const forwarded = request.headers['x-forwarded-for'];
    if (client === undefined && proxies.hidesClients(remote, forwarded)) {
      refuse(socket, 400, 'the proxy does not say who its client is');
      return;
    }
    const address = client ?? proxies.clientOf(remote, forwarded);
    const counted = client === undefined ? connectionOf(socket) : undefined;
    if (counted?.place !== clientKey(address) && !admit(address, counted !== undefined)) {
      refuse(socket, 503, 'there is no place for another connection');
      return;
    }
    const offered = protocolsOf(request);
    const protocol = [PROTOCOL_V2, PROTOCOL_V1].find((name) => offered.includes(name));
    // A client that names none speaks JSON lines.
    if (protocol === undefined && offered.length > 0) {
      refuse(socket, 400, `the subprotocols are ${PROTOCOL_V1} and ${PROTOCOL_V2}`);
      return;
    }
    this.#sockets.accept(
      request,
      socket,
      head,
      { client: '', ...(protocol === undefined ? {} : { protocol }) },
      (opened) => this.#open(service, opened, address, counted),
    );
  }

  #open(service: StratumService, socket: StratumSocket, address: string, counted: Connection | undefined): void {
    const { desk, count } = this.#dependencies;
    const form = socket.protocol === PROTOCOL_V2 ? 'v2' : 'v1';
    const giveBack = this.#take(clientKey(address), counted);
    count(1);
    socket.on('close', () => {
      count(-1);
      giveBack?.();
      const conversation = socket[CONVERSATION];
      if (conversation !== undefined) desk.gone(conversation, 'closed by the miner');
    });
    const conversation = desk.open(service, form, new WebSocketPeer(socket, form), address);
    socket[CONVERSATION] = conversation;
    socket.on('message', (data, isBinary) => {
      if (conversation.isEnding) return;
      if (isBinary !== (form === 'v2')) return conversation.end('a frame of the wrong kind');
      conversation.receiveMessage(bytesOf(data));
    });
  }

  /** Counts a connection under its client's address. A connection accepted here is uncounted when it closes. */
  #take(key: string, counted: Connection | undefined): (() => void) | undefined {
    const { places } = this.#dependencies;
    if (counted === undefined) {
      places.add(key);
      return () => places.giveBack(key);
    }
    if (counted.place === key) return undefined;
    places.giveBack(counted.place);
    places.add(key);
    counted.place = key;
    return undefined;
  }
}

const bytesOf = (data: RawData): Bytes =>
  Array.isArray(data) ? Buffer.concat(data) : data instanceof ArrayBuffer ? new Uint8Array(data) : data;

function refuse(socket: Duplex, status: number, message: string): void {
  refuseUpgrade(socket, { status, type: 'text/plain; charset=utf-8', body: `${message}\n` });
}
