/** svc-mining-v1 for a miner: JSON-RPC lines on a stream, one message per text frame on a WebSocket. */
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { LineSplitter } from '../../protocol/stratum/line.ts';
import { decodeServerMessage, type Notification, type ServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { type Call, encodeRequest, type Method, type RequestId } from '../../protocol/stratum/v1-request.ts';
import type { FromServer, ToServer, Wire } from './wire.ts';

type Asked = { readonly method: Method; readonly number: number };

/** Requests without an answer that are remembered; a server that leaves so many unanswered is of no use. */
const MAX_ASKED = 8_192;

export class WireV1 implements Wire {
  readonly opening = undefined;
  readonly #framed: boolean;
  readonly #lines = new LineSplitter();
  readonly #asked = new Map<RequestId, Asked>();
  #nextId = 1;

  /** `framed`: on a WebSocket, where a frame is a message. */
  constructor(framed: boolean) {
    this.#framed = framed;
  }

  encode(message: ToServer): Bytes | string {
    const { call, number } = toCall(message);
    if (this.#asked.size >= MAX_ASKED) throw new ProtocolError('too_long', 'too many requests without an answer');
    const id = this.#nextId++;
    this.#asked.set(id, { method: call.method, number });
    const text = encodeRequest(id, call);
    return this.#framed ? text : utf8(`${text}\n`);
  }

  receive(data: Bytes | string, take: (message: FromServer) => void): void {
    if (this.#framed !== (typeof data === 'string'))
      throw new ProtocolError('unsupported_kind', 'a frame of the wrong kind');
    if (typeof data === 'string') take(this.#read(data));
    else
      this.#lines.push(data, (line) => {
        take(this.#read(line));
        return true;
      });
  }

  #read(message: Bytes | string): FromServer {
    const decoded = decodeServerMessage(message, (id) => this.#asked.get(id)?.method);
    if (decoded.kind === 'notification') return fromNews(decoded);
    const asked = decoded.id === null ? undefined : this.#asked.get(decoded.id);
    if (decoded.id !== null) this.#asked.delete(decoded.id);
    if (decoded.kind === 'result') return fromResult(decoded, (asked as Asked).number);
    if (decoded.id !== null && asked === undefined)
      throw new ProtocolError('reply_unexpected', 'an error for a request that was not made');
    if (asked?.method === 'mining.submit') return { kind: 'rejected', sequence: asked.number, error: decoded.error };
    // A server that does not know mining.ping answered with an error: it is alive, which is all a ping asks.
    if (asked?.method === 'mining.ping') return { kind: 'pong', token: asked.number };
    // A server that does not know receipts gives none.
    if (asked?.method === 'mining.receipts') return { kind: 'receipts', offer: null };
    return { kind: 'refused', error: decoded.error };
  }
}

function fromNews(news: Notification): FromServer {
  switch (news.method) {
    case 'mining.notify':
      return { kind: 'job', job: news.params };
    case 'mining.reconnect':
      return { kind: 'reconnect', reconnect: news.params };
    case 'mining.receipt':
      return { kind: 'receipt', receipt: news.params };
  }
}

function toCall(message: ToServer): { call: Call; number: number } {
  switch (message.kind) {
    case 'subscribe':
      return { call: { method: 'mining.subscribe', params: message.subscribe }, number: 0 };
    case 'authorize':
      return { call: { method: 'mining.authorize', params: message.authorize }, number: 0 };
    case 'submit':
      return { call: { method: 'mining.submit', params: message.submit }, number: message.sequence };
    case 'ping':
      return { call: { method: 'mining.ping' }, number: message.token };
    case 'receipts':
      return { call: { method: 'mining.receipts' }, number: 0 };
    case 'pong':
      throw new ProtocolError('unsupported_kind', 'v1 has no ping from the server');
    case 'farm':
    case 'rig':
    case 'farmSubmit':
      throw new ProtocolError('unsupported_kind', 'v1 has no farms');
  }
}

function fromResult(result: ServerMessage & { kind: 'result' }, number: number): FromServer {
  switch (result.method) {
    case 'mining.subscribe':
      return { kind: 'subscribed', subscribed: result.result };
    case 'mining.authorize':
      return { kind: 'authorized', authorized: result.result };
    case 'mining.submit':
      return { kind: 'accepted', sequence: number, work: result.result.work, blockId: result.result.blockId };
    case 'mining.ping':
      return { kind: 'pong', token: number };
    case 'mining.receipts':
      return { kind: 'receipts', offer: result.result };
    case 'mining.stats':
      throw new ProtocolError('reply_unexpected', 'statistics that were not asked for');
  }
}
