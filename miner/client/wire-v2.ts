/** svc-mining-v2 for a miner: binary frames, after `SVC2` on a stream; one frame per binary frame on a WebSocket. */

import { receiptDocument } from '../../protocol/books/receipt.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { stratumError } from '../../protocol/stratum/errors.ts';
import { FrameSplitter, readFrame, V2_MAGIC } from '../../protocol/stratum/frame.ts';
import type { SignedHead } from '../../protocol/stratum/receipt-messages.ts';
import { decodeServerFrame, encodeClientFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import type { FromServer, ToServer, Wire } from './wire.ts';

export class WireV2 implements Wire {
  readonly opening: Bytes | undefined;
  readonly #framed: boolean;
  readonly #frames = new FrameSplitter();
  #head: SignedHead | undefined;

  constructor(framed: boolean) {
    this.#framed = framed;
    this.opening = framed ? undefined : V2_MAGIC;
  }

  encode(message: ToServer): Bytes {
    switch (message.kind) {
      case 'subscribe':
        return encodeClientFrame({ type: 'subscribe', subscribe: message.subscribe });
      case 'authorize':
        return encodeClientFrame({ type: 'authorize', authorize: message.authorize });
      case 'submit':
        return encodeClientFrame({ type: 'submit', sequence: message.sequence, submit: message.submit });
      case 'ping':
        return encodeClientFrame({ type: 'ping', value: BigInt(message.token) });
      case 'pong':
        return encodeClientFrame({ type: 'pong', value: message.token });
      case 'receipts':
        return encodeClientFrame({ type: 'receipts' });
      case 'farm':
        return encodeClientFrame({ type: 'farm', rigs: message.rigs });
      case 'rig':
        return encodeClientFrame({ type: 'rig', rig: message.rig });
      case 'farmSubmit':
        return encodeClientFrame({ type: 'farmSubmit', sequence: message.sequence, submit: message.submit });
    }
  }

  receive(data: Bytes | string, take: (message: FromServer) => void): void {
    if (typeof data === 'string') throw new ProtocolError('unsupported_kind', 'a frame of the wrong kind');
    if (this.#framed) take(this.#translate(decodeServerFrame(readFrame(data))));
    else
      this.#frames.push(data, (type, payload) => {
        take(this.#translate(decodeServerFrame({ type, payload })));
        return true;
      });
  }

  /** A receipt is read with the head that came before it. */
  #translate(frame: ServerFrame): FromServer {
    if (frame.type === 'receiptHead') {
      this.#head = frame.signed;
      return { kind: 'receiptHead' };
    }
    if (frame.type !== 'receipt') return translate(frame);
    if (this.#head === undefined) throw new ProtocolError('unsupported_kind', 'a receipt without its head');
    const { head, signature } = this.#head;
    return { kind: 'receipt', receipt: receiptDocument(head, signature, frame.entry) };
  }
}

function translate(frame: Exclude<ServerFrame, { type: 'receiptHead' | 'receipt' }>): FromServer {
  switch (frame.type) {
    case 'subscribed':
      return { kind: 'subscribed', subscribed: frame.subscribed };
    case 'authorized':
      return { kind: 'authorized', authorized: frame.authorized };
    case 'job':
      return { kind: 'job', job: frame.job };
    case 'accepted':
      return { kind: 'acknowledged', through: frame.through, count: frame.count, work: frame.work };
    case 'rejected': {
      const error = { code: frame.code, message: stratumError(frame.code).meaning, retryAfterMillis: null };
      return { kind: 'rejected', sequence: frame.sequence, error };
    }
    case 'block':
      return { kind: 'block', sequence: frame.sequence, blockId: frame.blockId };
    case 'error':
      return { kind: 'refused', error: frame.error };
    case 'reconnect':
      return { kind: 'reconnect', reconnect: frame.reconnect };
    case 'farmOffer':
      return { kind: 'farmOffer', offer: frame.offer };
    case 'farmJob':
      return { kind: 'farmJob', job: frame.job };
    case 'receiptsOffer':
      return { kind: 'receipts', offer: frame.offer };
    case 'ping':
      return { kind: 'ping', token: frame.value };
    case 'pong':
      return frame.value <= BigInt(Number.MAX_SAFE_INTEGER)
        ? { kind: 'pong', token: Number(frame.value) }
        : { kind: 'pong', token: -1 };
  }
}
