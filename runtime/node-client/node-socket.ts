/**
 * The WebSocket from a program to a node. Its input is bounded: frames have a maximum size, redirects are refused, a
 * silent connection is pinged and closed without an answer, a peer that sends pings without reading gets no more pongs,
 * and one that sends frames with next to nothing in them is closed.
 */
import { WebSocket } from 'ws';
import { fullBucket, take } from '../clients/token-bucket.ts';
import { steadyMillis } from '../clock/clock.ts';

/** A cut pays at most 6,144 blocks, each with 260 characters of text. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;

const LIMITS = { handshakeMillis: 10_000, quietMillis: 30_000, closeMillis: 2_000, unreadBytes: 65_536 };

/** Pings, pongs and messages shorter than any event: a node sends one now and then. A frame costs as much as its first hundreds of bytes. */
const SMALL_FRAMES = { perSecond: 16, burst: 256 };
const SMALL_BYTES = 32;

export class NodeSocket extends WebSocket {
  #heard = true;
  #small = fullBucket(SMALL_FRAMES, steadyMillis());

  constructor(url: string, protocols: string[], quietMillis = LIMITS.quietMillis) {
    super(url, protocols, {
      maxPayload: MAX_FRAME_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
      handshakeTimeout: LIMITS.handshakeMillis,
      autoPong: false,
    });
    // The caller listens to `close`; an `error` event without a listener would end the process.
    this.on('error', () => undefined);
    this.on('message', (data: Buffer) => this.#hear(data.length));
    this.on('pong', () => this.#hear(0));
    this.on('ping', (data: Buffer) => {
      this.#hear(0);
      if (this.bufferedAmount < LIMITS.unreadBytes) this.pong(data);
    });
    const watch = setInterval(() => this.#watch(), quietMillis);
    watch.unref();
    this.on('close', () => clearInterval(watch));
  }

  /** A peer that does not close is not waited for: it could keep sending. */
  override close(code?: number, reason?: string): void {
    super.close(code, reason);
    setTimeout(() => this.terminate(), LIMITS.closeMillis).unref();
  }

  #hear(bytes: number): void {
    this.#heard = true;
    if (bytes >= SMALL_BYTES) return;
    const left = take(this.#small, SMALL_FRAMES, steadyMillis());
    if (left === undefined) this.terminate();
    else this.#small = left;
  }

  #watch(): void {
    // Nor is a handshake that arrives byte by byte: its own time-out restarts with each.
    const isThere = this.readyState === WebSocket.OPEN && this.#heard;
    if (!isThere) this.terminate();
    else this.ping();
    this.#heard = false;
  }
}
