/**
 * Streams of the client that must not miss anything (specification: Events, Node sockets). After any loss of the
 * connection, cuts above the last delivered one are requested; each cut is delivered once, in order; if that is
 * impossible, the reader gets the range to read over HTTP.
 */
import { ApiError, backoffMillis } from './client-calls.ts';
import { parseFrame, type SocketLike, type StreamDependencies, socketUrl } from './client-socket.ts';
import { isFinalStatus, type TransactionStatus, transactionStatus } from './documents.ts';
import { type Checkpoint, type CutFinalized, checkpoint, cutFinalized } from './frames.ts';
import { SOCKETS } from './routes.ts';
import { check, type JsonSchema } from './schema.ts';

export type CutStreamItem =
  | { readonly type: 'cut_finalized'; readonly data: CutFinalized }
  /** Cuts from `from` to `to` cannot be replayed: read them over HTTP. The stream goes on at `to` + 1. */
  | { readonly type: 'missed'; readonly data: { readonly from: number; readonly to: number } };

export type CutStreamOptions = {
  readonly baseUrl: string;
  /** The last height the reader has; without it the stream starts at the head. */
  readonly afterHeight?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * The stream fails when a connection is lost, instead of reconnecting: for a reader that must first check whether the
   * server still has the delivered cuts.
   */
  readonly failsWhenLost?: boolean;
  /** Cuts kept for a reader that is busy; when they are full the connection is given up and resumed later. */
  readonly maxQueued?: number;
  /** The same in characters of text. */
  readonly maxQueuedText?: number;
  /** Connected, and the node is finalized up to this cut. */
  readonly onConnected?: (head: Checkpoint['cut']) => void;
  /** It was closed or refused, or sent something that is not a frame. */
  readonly onLost?: (reason: string) => void;
};

const QUEUE = { frames: 4_096, text: 32 * 1024 * 1024 };

function checked<T>(schema: JsonSchema, data: unknown): T {
  const problem = check(schema, data, '', { unknownFields: 'ignore' });
  if (problem !== undefined) throw new ApiError('client_bad_answer', 0, `${problem.field} ${problem.problem}`);
  return data as T;
}

/** One connection as a queue of frames that ends when the socket does. */
class FrameQueue {
  readonly #frames: unknown[] = [];
  #text = 0;
  readonly #socket: SocketLike;
  readonly #signal: AbortSignal | undefined;
  readonly #abort = (): void => this.close();
  #wake: (() => void) | undefined;
  #closed = false;

  constructor(socket: SocketLike, max: { frames: number; text: number }, signal: AbortSignal | undefined) {
    this.#socket = socket;
    this.#signal = signal;
    socket.addEventListener('message', (event) => {
      if (this.#closed) return;
      this.#frames.push(event.data);
      this.#text += lengthOf(event.data);
      if (this.#frames.length >= max.frames || this.#text >= max.text) this.close();
      this.#notify();
    });
    socket.addEventListener('close', () => this.#end());
    socket.addEventListener('error', () => this.#end());
    signal?.addEventListener('abort', this.#abort);
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #end(): void {
    this.#closed = true;
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#notify();
  }

  close(): void {
    if (this.#closed) return;
    this.#end();
    this.#socket.close(1000);
  }

  /** Frames that arrived before the end are still delivered. */
  async next(): Promise<unknown> {
    while (this.#frames.length === 0) {
      if (this.#closed) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const frame = this.#frames.shift();
    this.#text -= lengthOf(frame);
    return frame;
  }
}

/** Anything but text ends the connection as soon as it is read. */
const lengthOf = (data: unknown): number => (typeof data === 'string' ? data.length : 0);

/** Every finalized cut above `afterHeight`, once and in order, across any number of lost connections. */
export async function* followCuts(
  options: CutStreamOptions,
  dependencies: StreamDependencies,
): AsyncGenerator<CutStreamItem, void, undefined> {
  const { baseUrl, signal, maxQueued = QUEUE.frames, maxQueuedText = QUEUE.text, onConnected, onLost } = options;
  const stopped = (): boolean => signal?.aborted === true;
  let last = options.afterHeight;
  /** Set after `history_unavailable`: connect at the head, and report what lies between. */
  let fromHead = last === undefined;
  let failures = 0;
  while (!stopped()) {
    const query = fromHead ? '' : `?after_height=${last}`;
    const socket = new dependencies.WebSocket(socketUrl(baseUrl, `${SOCKETS.events.path}${query}`), [
      SOCKETS.events.subprotocol,
    ]);
    const frames = new FrameQueue(socket, { frames: maxQueued, text: maxQueuedText }, signal);
    let reason = 'the connection ended';
    try {
      for (let data = await frames.next(); data !== undefined; data = await frames.next()) {
        if (stopped()) return;
        const frame = parseFrame(data);
        if (frame.type === 'checkpoint') {
          const { cut, finalized_height: head } = checked<Checkpoint>(checkpoint, frame.data);
          failures = 0;
          onConnected?.(cut);
          if (fromHead) {
            if (last !== undefined && head > last) yield { type: 'missed', data: { from: last + 1, to: head } };
            last = head;
            fromHead = false;
          }
        } else if (frame.type === 'cut_finalized') {
          const cut = checked<CutFinalized>(cutFinalized, frame.data);
          if (last === undefined) continue;
          // Neither a hole nor an old cut comes from a correct server: `last` may come from a false checkpoint. Asking again above it is right whatever caused it.
          if (cut.cut.height !== last + 1) {
            reason = `cut ${cut.cut.height} came after cut ${last}`;
            break;
          }
          last = cut.cut.height;
          yield { type: 'cut_finalized', data: cut };
        } else if (frame.type === 'resync_required') {
          fromHead = frame.data.reason === 'history_unavailable';
          break;
        }
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      reason = error.message;
    } finally {
      frames.close();
    }
    if (stopped()) return;
    onLost?.(reason);
    if (options.failsWhenLost === true && !fromHead) throw new ApiError('client_unreachable', 0, reason);
    await dependencies.sleep(backoffMillis(failures++, dependencies.random));
  }
}

/** The status of one transaction now and at every change, until it is final. */
export async function* followTransaction(
  options: { readonly baseUrl: string; readonly id: string; readonly signal?: AbortSignal | undefined },
  dependencies: StreamDependencies,
): AsyncGenerator<TransactionStatus, void, undefined> {
  const { baseUrl, id, signal } = options;
  const stopped = (): boolean => signal?.aborted === true;
  const path = SOCKETS.transactionStatus.path.replace('{id}', encodeURIComponent(id));
  let shown = '';
  let failures = 0;
  while (!stopped()) {
    const socket = new dependencies.WebSocket(socketUrl(baseUrl, path), [SOCKETS.transactionStatus.subprotocol]);
    const frames = new FrameQueue(socket, QUEUE, signal);
    try {
      for (let data = await frames.next(); data !== undefined; data = await frames.next()) {
        const frame = parseFrame(data);
        if (frame.type !== 'snapshot' && frame.type !== 'update') continue;
        failures = 0;
        const status = checked<TransactionStatus>(transactionStatus, frame.data);
        const text = JSON.stringify(status);
        if (text !== shown) yield status;
        shown = text;
        if (isFinalStatus(status)) return;
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    } finally {
      frames.close();
    }
    if (stopped()) return;
    await dependencies.sleep(backoffMillis(failures++, dependencies.random));
  }
}
