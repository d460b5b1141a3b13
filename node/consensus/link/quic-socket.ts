/**
 * A QUIC connection of the overlay with its one stream, as a socket: what is spoken over it is the same as over TCP.
 * It is read no faster than its reader takes it.
 */
import { Duplex } from 'node:stream';
import type { NativeConnection, NativeStream } from '../../quic/quic-package.ts';

const CHUNK_BYTES = 65_536;

/** What the overlay uses of a socket. */
export type OverlaySocket = Duplex & {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  /** Of TCP. */
  setNoDelay?(noDelay: boolean): unknown;
  /** Of TCP: also what was not sent yet is gone. */
  resetAndDestroy?(): unknown;
  /** Emits `timeout` after so long without bytes; 0: never. */
  setTimeout(millis: number, listener?: () => void): unknown;
};

export class QuicSocket extends Duplex {
  readonly #connecting: () => Promise<NativeConnection>;
  readonly #isInbound: boolean;
  #connection: NativeConnection | undefined;
  #stream: NativeStream | undefined;
  #idle: NodeJS.Timeout | undefined;
  remoteAddress: string | undefined;
  remotePort: number | undefined;

  /** An incoming one is there already, and waits for the stream that the other side opens. */
  constructor(from: NativeConnection | (() => Promise<NativeConnection>)) {
    super({ readableHighWaterMark: CHUNK_BYTES });
    this.once('end', () => this.destroy());
    this.#isInbound = typeof from !== 'function';
    this.#connecting = typeof from === 'function' ? from : async () => from;
    if (typeof from !== 'function') this.#isAt(from);
  }

  #isAt(connection: NativeConnection): void {
    const [, ip, port] = /^\/ip[46]\/([^/]+)\/udp\/(\d+)/.exec(connection.remoteMultiaddr()) ?? [];
    this.#connection = connection;
    this.remoteAddress = ip;
    this.remotePort = Number(port);
  }

  async #open(): Promise<void> {
    const connection = await this.#connecting();
    if (this.destroyed) {
      connection.abort();
      throw new Error('it is not wanted any more');
    }
    this.#isAt(connection);
    const over = () => void this.destroy();
    connection.closed().then(over, over);
    this.#stream = await (this.#isInbound ? connection.inboundStream() : connection.outboundStream());
  }

  override _construct(done: (error?: Error | null) => void): void {
    this.#open().then(
      () => {
        done();
        this.emit('connect');
      },
      (error) => done(error as Error),
    );
  }

  override _read(): void {
    this.#stream?.read(CHUNK_BYTES).then(
      (bytes) => {
        this.#idle?.refresh();
        this.push(
          bytes == null || bytes.length === 0 ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
        );
      },
      () => this.destroy(),
    );
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#stream?.write(bytes).then(
      () => {
        this.#idle?.refresh();
        done();
      },
      (error) => done(error as Error),
    );
  }

  override _final(done: (error?: Error | null) => void): void {
    Promise.resolve(this.#stream?.finishWrite()).then(
      () => done(),
      () => done(),
    );
  }

  /** At once: the base class waits until the stream is open, and a stranger may never open one. */
  override destroy(error?: Error): this {
    clearTimeout(this.#idle);
    this.#connection?.abort();
    return super.destroy(error);
  }

  setTimeout(millis: number, listener?: () => void): this {
    clearTimeout(this.#idle);
    this.#idle = millis === 0 ? undefined : setTimeout(() => this.emit('timeout'), millis);
    if (listener !== undefined) this.once('timeout', listener);
    return this;
  }
}
