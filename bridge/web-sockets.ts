/**
 * Stratum over WebSocket (S4): both subprotocols, one message per frame. Origins other than the operator's are refused, and
 * a frame of the wrong kind ends the connection. Compression is never offered: a job does not compress, and its state
 * would cost more than the whole connection.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Bytes } from '../protocol/bytes.ts';
import { MAX_LINE_BYTES } from '../protocol/stratum/line.ts';
import { PROTOCOL_V1, PROTOCOL_V2 } from '../protocol/stratum/messages.ts';
import { clientKey, type TrustedProxies } from '../runtime/client-address.ts';
import type { Conversation } from './conversation.ts';
import type { Desk } from './desk.ts';
import { WebSocketPeer } from './peers.ts';
import type { StratumService } from './service.ts';

export type StratumSocketsDependencies = {
  readonly desk: Desk;
  readonly origins: readonly string[];
  readonly proxies: TrustedProxies;
  readonly admit: (address: string) => boolean;
  readonly onOpen: (key: string) => void;
  readonly onClose: (key: string) => void;
};

const CONVERSATION = Symbol('conversation');
type StratumSocket = WebSocket & { [CONVERSATION]?: Conversation };

export class StratumSockets {
  readonly #dependencies: StratumSocketsDependencies;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_LINE_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: (offered) =>
      offered.has(PROTOCOL_V2) ? PROTOCOL_V2 : offered.has(PROTOCOL_V1) ? PROTOCOL_V1 : false,
  });

  constructor(dependencies: StratumSocketsDependencies) {
    this.#dependencies = dependencies;
  }

  /** `client`: the address, where the web server that took the request has told it already. */
  upgrade(service: StratumService, request: IncomingMessage, socket: Duplex, head: Bytes, client?: string): void {
    const { origins, proxies, admit } = this.#dependencies;
    const remote = (socket as Duplex & { remoteAddress?: string }).remoteAddress;
    if (remote === undefined) return void socket.destroy();
    const { origin } = request.headers;
    if (origin !== undefined && !origins.includes(origin)) {
      refuse(socket, '403 Forbidden');
      return;
    }
    const forwarded = request.headers['x-forwarded-for'];
    if (client === undefined && proxies.hidesClients(remote, forwarded)) {
      refuse(socket, '400 Bad Request');
      return;
    }
    const address = client ?? proxies.clientOf(remote, forwarded);
    if (!admit(address)) {
      refuse(socket, '503 Service Unavailable');
      return;
    }
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((word) => word.trim());
    if (!offered.includes(PROTOCOL_V1) && !offered.includes(PROTOCOL_V2)) {
      refuse(socket, '400 Bad Request');
      return;
    }
    this.#server.handleUpgrade(request, socket, Buffer.from(head), (webSocket) =>
      this.#open(service, webSocket, address),
    );
  }

  #open(service: StratumService, socket: StratumSocket, address: string): void {
    const { desk, onOpen, onClose } = this.#dependencies;
    const form = socket.protocol === PROTOCOL_V2 ? 'v2' : 'v1';
    const key = clientKey(address);
    onOpen(key);
    socket.on('error', () => socket.terminate());
    socket.on('close', () => {
      onClose(key);
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
}

const bytesOf = (data: RawData): Bytes =>
  Array.isArray(data) ? Buffer.concat(data) : data instanceof ArrayBuffer ? new Uint8Array(data) : data;

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  socket.on('error', () => {});
}
