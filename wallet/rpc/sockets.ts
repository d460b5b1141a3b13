/**
 * Events on `/v1/ws` (specification: Events): JSON-RPC text frames; `subscribe` and `unsubscribe` choose events, and each
 * event is a notification whose method is its name. A reader that falls behind loses events and gets a notice of it.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { check, list, object, oneOf } from '../../protocol/api/schema.ts';
import { WebSockets } from '../../runtime/door/web-sockets.ts';
import { EVENT_NAMES, type EventName, type WalletEvent } from '../event-hub.ts';
import type { Wallet } from '../wallet.ts';
import { RPC_ERRORS, type RpcAnswer, type RpcRequest, readRequest, rpcError } from './dispatch.ts';

const MAX_FRAME = 16 * 1024;
const MAX_FRAMES_PER_SECOND = 20;
/** Bytes that may wait for a slow reader. */
const MAX_WAITING = 1024 * 1024;
const PING_MILLIS = 30_000;

export const eventsParams = object({
  events: list(oneOf(EVENT_NAMES), { minItems: 1, maxItems: EVENT_NAMES.length }),
});

export const SOCKET_METHODS = {
  subscribe: { group: 'Events', summary: 'Starts sending these events', params: eventsParams },
  unsubscribe: { group: 'Events', summary: 'Stops sending these events', params: eventsParams },
} as const;

type Reader = { readonly events: Set<EventName>; lagged: boolean; frames: number };

export class EventSockets {
  readonly #wallet: Wallet;
  readonly #sockets: WebSockets;
  readonly #readers = new Map<WebSocket, Reader>();
  readonly #stopListening: () => void;
  readonly #timer: NodeJS.Timeout;

  constructor(wallet: Wallet, most: number) {
    this.#wallet = wallet;
    this.#sockets = new WebSockets({ name: 'wallet', frameBytes: MAX_FRAME, most, pingMillis: PING_MILLIS }, wallet);
    this.#stopListening = wallet.events.listen(
      (event) => this.#send(event),
      (name) => this.#readers.values().some(({ events }) => events.has(name)),
    );
    this.#timer = setInterval(() => {
      for (const [socket, reader] of this.#readers) {
        reader.frames = 0;
        if (reader.lagged) this.#catchUp(socket, reader);
      }
    }, 1000);
    this.#timer.unref();
  }

  get full(): boolean {
    return this.#sockets.isFull('');
  }

  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // All connections with the token count as one client.
    this.#sockets.accept(request, socket, head, { client: '' }, (opened) => {
      const reader: Reader = { events: new Set(), lagged: false, frames: 0 };
      this.#readers.set(opened, reader);
      opened.on('close', () => this.#readers.delete(opened));
      opened.on('message', (data: Buffer, binary) => {
        if (binary) return opened.close(1003, 'text frames only');
        if (++reader.frames > MAX_FRAMES_PER_SECOND) return opened.close(1008, 'too many frames');
        const isNew = !reader.events.has('staking');
        const answer = JSON.stringify(this.#answer(reader, data.toString('utf8')));
        if (!isNew || !reader.events.has('staking')) return opened.send(answer);
        // Answered once the initial state is known: every change after the answer is reported.
        void this.#wallet
          .beginStakingEvents()
          .catch(() => undefined)
          .then(() => opened.readyState === opened.OPEN && opened.send(answer));
      });
    });
  }

  close(): void {
    this.#stopListening();
    clearInterval(this.#timer);
    this.#sockets.close(1001, 'going away');
  }

  #answer(reader: Reader, text: string): RpcAnswer {
    const request: RpcRequest | RpcAnswer = readRequest(text);
    if ('jsonrpc' in request) return request;
    const { id, method, params } = request;
    if (method !== 'subscribe' && method !== 'unsubscribe')
      return rpcError(id, RPC_ERRORS.method, 'this socket offers subscribe and unsubscribe; calls go to POST /v1/rpc');
    const problem = check(eventsParams, params);
    if (problem !== undefined)
      return rpcError(id, RPC_ERRORS.params, `${problem.field} ${problem.problem}`, {
        code: 'params_invalid',
        field: problem.field,
      });
    for (const name of (params as { events: EventName[] }).events) {
      if (method === 'subscribe') reader.events.add(name);
      else reader.events.delete(name);
    }
    const { indexedHeight } = this.#wallet.book.meta;
    return { jsonrpc: '2.0', id, result: { events: [...reader.events], indexed_height: indexedHeight } };
  }

  #send({ name, params }: WalletEvent): void {
    let frame: string | undefined;
    for (const [socket, reader] of this.#readers) {
      if (!reader.events.has(name)) continue;
      if (reader.lagged || socket.bufferedAmount > MAX_WAITING) {
        reader.lagged = true;
        continue;
      }
      frame ??= JSON.stringify({ jsonrpc: '2.0', method: name, params });
      socket.send(frame);
    }
  }

  /** Sent without a subscription: a reader that lost events must learn of it. */
  #catchUp(socket: WebSocket, reader: Reader): void {
    if (socket.bufferedAmount > 0) return;
    reader.lagged = false;
    const params = { reason: 'stream_lagged', indexed_height: this.#wallet.book.meta.indexedHeight };
    socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'resync_required', params }));
  }
}
