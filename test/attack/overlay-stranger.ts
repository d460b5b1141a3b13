/** A stranger at a validator's overlay, over a real socket: it proves no key, hears what it is sent, and comes again whenever it is ended. */
import { connect, type Socket } from 'node:net';
import { decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import { FrameReader, MAX_FRAME_BYTES, TAG_BYTES } from '../../node/consensus/link/frames.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { RawEnd } from '../consensus/raw-end.ts';

/** It may not listen yet. */
const RETRY_MILLIS = 50;

export class OverlayStranger {
  readonly #port: number;
  readonly #chainId: Bytes;
  readonly #hear: (bytes: Bytes) => void;
  #socket!: Socket;
  #end!: RawEnd;
  #isOver = false;

  constructor(port: number, chainId: Bytes, hear: (bytes: Bytes) => void) {
    this.#port = port;
    this.#chainId = chainId;
    this.#hear = hear;
    this.#dial();
  }

  #dial(): void {
    const [socket, end, reader] = [
      connect({ host: '127.0.0.1', port: this.#port }),
      new RawEnd(this.#chainId),
      new FrameReader(),
    ];
    this.#socket = socket;
    this.#end = end;
    let isIdentified = false;
    socket.on('connect', () => void socket.write(end.greeting));
    socket.on('error', () => undefined);
    socket.on('data', (piece) => {
      for (const frame of reader.push(piece)) {
        if (!end.isMet) {
          socket.write(end.open(frame));
          reader.limit = MAX_FRAME_BYTES + TAG_BYTES;
        } else if (isIdentified) this.#hear(end.read(frame));
        else {
          end.read(frame);
          isIdentified = true;
        }
      }
    });
    socket.on('close', () => {
      setTimeout(() => {
        if (!this.#isOver) this.#dial();
      }, RETRY_MILLIS);
    });
  }

  send(bytes: Bytes): void {
    if (this.#end.isMet) this.#socket.write(this.#end.frame(bytes));
  }

  close(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }
}

/** The transactions twice: what was once looked at before the root. Other messages are as they were. */
export function spoiledBlock(bytes: Bytes): Bytes {
  const message = decodeBlockMessage(bytes);
  if (message?.type !== 'block') return bytes;
  const body = decodeBody(message.body);
  const transactions = [...body.transactions, ...body.transactions];
  return encodeBlockMessage({ ...message, body: encodeBody({ ...body, transactions }) });
}

const CRUMBS: readonly Bytes[] = Array(260_000).fill(new Uint8Array(0));

/** A body of a mebibyte that has as many transactions as fit: empty ones. */
export function crumbledBlock(bytes: Bytes): Bytes {
  const message = decodeBlockMessage(bytes);
  if (message?.type !== 'block') return bytes;
  return encodeBlockMessage({
    ...message,
    body: encodeBody({ ...decodeBody(message.body), transactions: CRUMBS }),
  });
}
