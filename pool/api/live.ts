/**
 * Live frames over WebSocket: the pool's figures every few seconds, blocks and payments as the books learn of them. A frame
 * is serialised once for all pages; a page that does not read is dropped, and reads what it missed when it comes back.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { LiveFrame } from './documents.ts';

export type PoolEvent = {
  readonly id: number;
  readonly atMillis: number;
  readonly kind: string;
  readonly data: unknown;
};

export type LiveOptions = {
  readonly maxPages?: number;
  readonly maxQueuedBytes?: number;
  readonly pingMillis?: number;
};
export const LIVE_DEFAULTS = { maxPages: 5_000, maxQueuedBytes: 64 * 1024, pingMillis: 30_000 } as const;

type Page = WebSocket & { isSilent?: boolean };

export class LiveHub {
  readonly #options: Required<LiveOptions>;
  readonly #pages = new Set<Page>();
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: 1024,
    perMessageDeflate: false,
    clientTracking: false,
  });
  readonly #first: () => LiveFrame | undefined;
  readonly #timer: NodeJS.Timeout;
  dropped = 0;

  /** `first` is what a page gets at once. */
  constructor(options: LiveOptions, dependencies: { first: () => LiveFrame | undefined }) {
    this.#options = { ...LIVE_DEFAULTS, ...options };
    this.#first = dependencies.first;
    this.#timer = setInterval(() => this.#ping(), this.#options.pingMillis);
  }

  get pages(): number {
    return this.#pages.size;
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#pages.size >= this.#options.maxPages) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (page: Page) => {
      this.#pages.add(page);
      page.on('close', () => this.#pages.delete(page));
      page.on('error', () => page.terminate());
      page.on('pong', () => {
        page.isSilent = false;
      });
      // Pages only listen.
      page.on('message', () => page.close(1003, 'nothing is asked here'));
      const frame = this.#first();
      if (frame !== undefined) page.send(JSON.stringify(frame));
    });
  }

  send(frame: LiveFrame): void {
    if (this.#pages.size === 0) return;
    const text = Buffer.from(JSON.stringify(frame));
    for (const page of this.#pages) {
      if (page.bufferedAmount > this.#options.maxQueuedBytes) {
        this.dropped++;
        page.terminate();
      } else page.send(text, { binary: false });
    }
  }

  #ping(): void {
    for (const page of this.#pages) {
      if (page.isSilent === true) page.terminate();
      else {
        page.isSilent = true;
        page.ping();
      }
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (const page of this.#pages) page.close(1001, 'the pool stops');
    this.#pages.clear();
  }
}
