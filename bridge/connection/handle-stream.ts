/**
 * A TCP connection on the handle beneath `net.Socket`: no streams, no events, one buffer for all reads of a thread, and
 * one shared request object for all writes that complete synchronously, which are nearly all. It behaves like a socket
 * of node:net: bytes that the system does not accept at once are queued in order and counted, `end` takes effect after
 * them, and the end of the peer's input ends the connection.
 */
import { Socket } from 'node:net';
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { ARRIVAL, type Arrival } from './arrival.ts';
import type { Peer } from './conversation.ts';
import { type Handle, type HandleParts, handleParts, type Request } from './handles.ts';

/** Called with the stream as `this`, one function each for all streams; they must not throw. */
export type StreamEvents = {
  /** A chunk is valid only during the call: the next read of any stream overwrites it. */
  readonly onData: (this: HandleStream, chunk: Bytes) => void;
  readonly onClose: (this: HandleStream) => void;
};

const STREAM = Symbol('stream');
type OwnedHandle = Handle & { [STREAM]?: HandleStream };

const READ_BYTES = 65_536;
const ENDED_AT_ONCE = 1;

const parts = handleParts as HandleParts;
/**
 * libuv keeps its address while streams exist, so it lives as long as the thread. Not a Buffer: `slice` of a Buffer is
 * a view, which would change with the next read.
 */
const room = new Uint8Array(handleParts === null ? 0 : READ_BYTES);
let spareWrite: Request | null = null;

export class HandleStream implements Peer {
  readonly #handle: OwnedHandle;
  readonly #events: StreamEvents;
  [ARRIVAL]: Arrival | undefined = undefined;
  queued = 0;
  /** Data queued while a write was pending. */
  #waiting: Bytes[] | null = null;
  #isEnding = false;
  #isShut = false;
  #isAtEnd = false;
  #isClosed = false;

  constructor(handle: Handle, events: StreamEvents) {
    this.#handle = handle;
    this.#events = events;
    this.#handle[STREAM] = this;
    handle.onread = onRead;
    handle.useUserBuffer(room);
    handle.setNoDelay(true);
  }

  /** Undefined if the peer is gone already. */
  get remoteAddress(): string | undefined {
    const out: { address?: string } = {};
    this.#handle.getpeername(out);
    return out.address;
  }

  get framed(): boolean {
    return false;
  }

  start(): void {
    if (this.#handle.readStart() !== 0) this.destroy();
  }

  pause(): void {
    if (!this.#isClosed) this.#handle.readStop();
  }

  resume(): void {
    if (!this.#isClosed) this.start();
  }

  write(data: Bytes | string, wide: boolean): void {
    if (this.#isClosed || this.#isEnding) return;
    if (this.queued === 0) {
      this.queued = this.#send(data, wide);
      return;
    }
    const bytes = typeof data === 'string' ? Buffer.from(data, wide ? 'utf8' : 'latin1') : data;
    this.#waiting ??= [];
    this.#waiting.push(bytes);
    this.queued += bytes.length;
  }

  /** Returns the number of bytes still pending: 0 when the system accepted all of them. */
  #send(data: Bytes | string, wide: boolean): number {
    const handle = this.#handle;
    const request = spareWrite ?? newWrite();
    spareWrite = null;
    const error =
      typeof data !== 'string'
        ? handle.writeBuffer(request, data)
        : wide
          ? handle.writeUtf8String(request, data)
          : handle.writeLatin1String(request, data);
    if (error !== 0) {
      this.destroy();
      return 0;
    }
    if (parts.streamBaseState[parts.kLastWriteWasAsync] === 0) {
      spareWrite = request;
      return 0;
    }
    request.stream = this;
    request.bytes = parts.streamBaseState[parts.kBytesWritten] as number;
    // The system reads it later: the memory must not be reused before.
    request.data = data;
    return request.bytes;
  }

  /** A pending write has completed. */
  written(status: number, bytes: number): void {
    if (status !== 0) this.destroy();
    if (this.#isClosed) return;
    this.queued -= bytes;
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null)
      this.queued = this.#send(waiting.length === 1 ? (waiting[0] as Bytes) : concat(...waiting), false);
    if (this.queued === 0 && this.#isEnding) this.#shut();
  }

  end(): void {
    if (this.#isEnding || this.#isClosed) return;
    this.#isEnding = true;
    if (this.queued === 0) this.#shut();
  }

  #shut(): void {
    if (this.#isClosed) return;
    const request = new parts.ShutdownWrap();
    request.oncomplete = onShut;
    request.stream = this;
    const status = this.#handle.shutdown(request);
    if (status === ENDED_AT_ONCE) this.shut(0);
    else if (status !== 0) this.destroy();
  }

  /** The peer has been sent the end of output. */
  shut(status: number): void {
    this.#isShut = true;
    if (status !== 0 || this.#isAtEnd) this.destroy();
  }

  destroy(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting = null;
    this.queued = 0;
    this.#handle.close(onClosed);
  }

  /** The bytes read are in `room`. */
  read(): void {
    const count = parts.streamBaseState[parts.kReadBytesOrError] as number;
    if (this.#isClosed || count === 0) return;
    if (count > 0) {
      this.#events.onData.call(this, room.subarray(0, count));
      return;
    }
    this.#isAtEnd = true;
    // After an error the connection is closed. At the end of input, queued output is still sent.
    if (count !== END_OF_FILE || this.#isShut) this.destroy();
    else this.end();
  }

  closed(): void {
    this.#events.onClose.call(this);
  }

  /**
   * Moves the connection to a socket of node:net, for TLS; `read` are bytes that were read already. This stream ends
   * without an event. TLS reads into memory of its own, so the shared room is no longer used.
   */
  toSocket(read: Bytes): Socket {
    this.#isClosed = true;
    delete this.#handle[STREAM];
    const options = { handle: this.#handle, pauseOnCreate: true, readable: true, writable: true };
    const socket = new Socket(options as object);
    socket.unshift(Buffer.from(read));
    return socket;
  }
}

/** UV_EOF, the same on all systems. */
const END_OF_FILE = -4095;

function newWrite(): Request {
  const request = new parts.WriteWrap();
  request.oncomplete = onWritten;
  return request;
}

function onRead(this: OwnedHandle): void {
  this[STREAM]?.read();
}

function onWritten(this: Request, status: number): void {
  const stream = this.stream as HandleStream;
  this.stream = null;
  this.data = null;
  stream.written(status, this.bytes);
}

function onShut(this: Request, status: number): void {
  (this.stream as HandleStream).shut(status);
}

function onClosed(this: OwnedHandle): void {
  const stream = this[STREAM];
  delete this[STREAM];
  stream?.closed();
}
