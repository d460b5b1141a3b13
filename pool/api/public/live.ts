/**
 * Live frames over WebSocket: the pool's figures every few seconds, blocks and payments as they enter the books. A
 * frame is serialised once for all pages; a page that does not read is disconnected, and fetches the missed data after
 * a reconnect.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { refuseUpgrade } from '../../../runtime/door/door.ts';
import { WebSockets } from '../../../runtime/door/web-sockets.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { ApiRefusal, wordsOf } from '../api-error.ts';
import type { LiveFrame } from '../documents.ts';

export type PoolEvent = {
  readonly id: number;
  readonly atMillis: number;
  readonly kind: string;
  readonly data: unknown;
};

export type LiveOptions = {
  /** Of one client; in all as many as the listener admits. */
  readonly maxPagesPerClient?: number;
  readonly maxQueuedBytes?: number;
  readonly pingMillis?: number;
};
export const LIVE_DEFAULTS = {
  maxPagesPerClient: 100,
  maxQueuedBytes: 64 * 1024,
  pingMillis: 30_000,
} as const;

export type LiveDependencies = {
  /** The frames that a page gets when it connects. */
  readonly first: () => LiveFrame | undefined;
  readonly log: Pick<Logger, 'error'>;
};

const RETRY_MILLIS = 30_000;

export class LiveHub {
  readonly #options: Required<LiveOptions>;
  readonly #pages = new Set<WebSocket>();
  readonly #sockets: WebSockets;
  readonly #first: () => LiveFrame | undefined;
  dropped = 0;

  constructor(options: LiveOptions, dependencies: LiveDependencies) {
    this.#options = { ...LIVE_DEFAULTS, ...options };
    this.#first = dependencies.first;
    const { maxPagesPerClient: perClient, pingMillis } = this.#options;
    this.#sockets = new WebSockets({ name: 'live', frameBytes: 1024, perClient, pingMillis }, dependencies);
  }

  get pages(): number {
    return this.#pages.size;
  }

  /** `client`: the name its pages are counted under. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, client: string): void {
    if (this.#sockets.isFull(client)) {
      refuseUpgrade(socket, wordsOf(new ApiRefusal('unavailable', 'too many live pages are open', RETRY_MILLIS)));
      return;
    }
    this.#sockets.accept(request, socket, head, { client }, (page) => {
      this.#pages.add(page);
      page.on('close', () => this.#pages.delete(page));
      // Pages send nothing.
      page.on('message', () => page.close(1003, 'this connection takes no messages'));
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

  close(): void {
    this.#sockets.close(1001, 'the pool stops');
    this.#pages.clear();
  }
}
