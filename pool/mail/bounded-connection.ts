/**
 * A connection that ends before its server has said more than it may. Nodemailer queues every line and takes one from its queue at each turn of the event
 * loop, also after the connection has ended: a flood of empty lines that it once has slows every turn down for minutes.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

export class BoundedConnection extends Duplex {
  readonly #socket: Socket;
  #left: number;

  constructor(socket: Socket, mostBytes: number, onTooMuch: () => void) {
    super();
    this.#socket = socket;
    this.#left = mostBytes;
    socket.pause();
    socket.on('data', (chunk: Buffer) => {
      this.#left -= chunk.length;
      if (this.#left < 0) {
        onTooMuch();
        this.destroy();
      } else if (!this.push(chunk)) socket.pause();
    });
    socket.on('end', () => this.push(null));
    socket.on('timeout', () => this.emit('timeout'));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Uint8Array, _encoding: string, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  /** After the last word nothing is waited for: a server that does not close would keep the connection. */
  override _final(done: () => void): void {
    this.#socket.destroySoon();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  // What nodemailer, and TLS on top, ask a socket for.
  setTimeout(millis: number): this {
    this.#socket.setTimeout(millis);
    return this;
  }

  setKeepAlive(isWanted: boolean): this {
    this.#socket.setKeepAlive(isWanted);
    return this;
  }
}
