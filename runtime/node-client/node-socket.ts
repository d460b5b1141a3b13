/**
 * The WebSocket from a program to a node. Its input is bounded: frames have a maximum size, redirects are refused, a
 * silent connection is pinged and closed without an answer, and a peer that sends pings without reading gets no more
 * pongs.
 */
import { WebSocket } from 'ws';

/** A cut pays at most 6,144 blocks, each with 260 characters of text. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;

const LIMITS = { handshakeMillis: 10_000, quietMillis: 30_000, closeMillis: 2_000, unreadBytes: 65_536 };

export class NodeSocket extends WebSocket {
  #heard = true;

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
    this.on('message', () => this.#hear());
    this.on('pong', () => this.#hear());
    this.on('ping', (data: Buffer) => {
      this.#hear();
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

  #hear(): void {
    this.#heard = true;
  }

  #watch(): void {
    // Nor is a handshake that arrives byte by byte: its own time-out restarts with each.
    const isThere = this.readyState === WebSocket.OPEN && this.#heard;
    if (!isThere) this.terminate();
    else this.ping();
    this.#heard = false;
  }
}
