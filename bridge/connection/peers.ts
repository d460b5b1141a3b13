/** The two kinds of peers a conversation writes to: a stream (TCP or TLS) and a WebSocket. */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Bytes } from '../../protocol/bytes.ts';
import type { Peer } from './conversation.ts';

export class StreamPeer implements Peer {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get framed(): boolean {
    return false;
  }

  get queued(): number {
    return this.#socket.writableLength;
  }

  write(data: Bytes | string, wide: boolean): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    // Nearly all text is ASCII, which is quicker to write as latin1.
    if (typeof data === 'string') this.#socket.write(data, wide ? 'utf8' : 'latin1');
    else this.#socket.write(data);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

const TEXT = { binary: false, compress: false };
const BINARY = { binary: true, compress: false };

export class WebSocketPeer implements Peer {
  readonly #socket: WebSocket;
  /** v2 frames are binary; v1 messages are text, even if given as bytes. */
  readonly #options: typeof TEXT;

  constructor(socket: WebSocket, form: 'v1' | 'v2') {
    this.#socket = socket;
    this.#options = form === 'v1' ? TEXT : BINARY;
  }

  get framed(): boolean {
    return true;
  }

  get queued(): number {
    return this.#socket.bufferedAmount;
  }

  write(data: Bytes | string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(data, this.#options);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.close(1000);
  }

  destroy(): void {
    this.#socket.terminate();
  }
}
