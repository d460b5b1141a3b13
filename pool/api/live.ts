/**
 * Live events as a server-sent stream: news of the books in order, and the pool's figures every few seconds. A frame is
 * serialised once for all listeners; one that does not read is dropped, and comes back with the id of what it saw last.
 */
import type { ServerResponse } from 'node:http';

export const PUBLIC_EVENTS = [
  'block_found',
  'block_paid',
  'block_expired',
  'payout_sent',
  'payout_final',
  'slice_closed',
  'worker_silent',
] as const;

export type PoolEvent = {
  readonly id: number;
  readonly atMillis: number;
  readonly kind: string;
  readonly data: unknown;
};

export type LiveOptions = { readonly maxListeners?: number; readonly maxQueuedBytes?: number };
export const LIVE_DEFAULTS = { maxListeners: 5_000, maxQueuedBytes: 64 * 1024 } as const;

export const eventFrame = (event: PoolEvent): string =>
  `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify({ at_millis: event.atMillis, ...(event.data as object) })}\n\n`;

export class LiveHub {
  readonly #maxListeners: number;
  readonly #maxQueuedBytes: number;
  readonly #listeners = new Set<ServerResponse>();
  dropped = 0;

  constructor(options: LiveOptions = {}) {
    this.#maxListeners = options.maxListeners ?? LIVE_DEFAULTS.maxListeners;
    this.#maxQueuedBytes = options.maxQueuedBytes ?? LIVE_DEFAULTS.maxQueuedBytes;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  get full(): boolean {
    return this.#listeners.size >= this.#maxListeners;
  }

  /** The head must have been written. `missed` is what the listener has not seen yet. */
  add(response: ServerResponse, missed: string): void {
    this.#listeners.add(response);
    response.on('close', () => this.#listeners.delete(response));
    response.on('error', () => this.#listeners.delete(response));
    response.write(`retry: 3000\n\n${missed}`);
  }

  #send(frame: Buffer): void {
    for (const response of this.#listeners) {
      if (response.writableLength > this.#maxQueuedBytes) {
        this.dropped++;
        this.#listeners.delete(response);
        response.destroy();
      } else response.write(frame);
    }
  }

  event(event: PoolEvent): void {
    if ((PUBLIC_EVENTS as readonly string[]).includes(event.kind)) this.#send(Buffer.from(eventFrame(event)));
  }

  /** Figures have no id: whoever missed some gets the next. */
  figures(kind: string, data: unknown): void {
    if (this.#listeners.size > 0) this.#send(Buffer.from(`event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`));
  }

  close(): void {
    for (const response of this.#listeners) response.end();
    this.#listeners.clear();
  }
}
