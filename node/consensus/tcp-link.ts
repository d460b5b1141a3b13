/**
 * One connection to a neighbour: the hello, then frames in both directions. Bounded in everything: the size of a frame, bytes and messages a second (a neighbour that sends more is read
 * more slowly), what waits to be sent, the time to say hello, silence.
 */
import type { Socket } from 'node:net';
import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { checkHello, encodeHello, FrameReader, frameBytes, type Hello, MAX_FRAME_BYTES } from './tcp-frames.ts';

export const LINK_LIMITS = {
  helloMillis: 10_000,
  keepAliveMillis: 15_000,
  silentMillis: 60_000,
  /** How long a neighbour may leave a full queue unread. */
  stalledMillis: 30_000,
  queuedBytes: 8 * 1024 * 1024,
  bytes: { perSecond: 16 * 1024 * 1024, burst: 80 * 1024 * 1024 },
  messages: { perSecond: 1_000, burst: 4_000 },
} as const;
export type LinkLimits = {
  readonly [K in keyof typeof LINK_LIMITS]: (typeof LINK_LIMITS)[K] extends number ? number : Rate;
};
type Rate = { readonly perSecond: number; readonly burst: number };

/** Takes whatever comes and says how long to wait before more is read. */
class Allowance {
  readonly #rate: Rate;
  #left: number;
  #at: number;

  constructor(rate: Rate, now: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#at = now;
  }

  spend(cost: number, now: number): number {
    const { perSecond, burst } = this.#rate;
    this.#left = Math.min(burst, this.#left + (Math.max(0, now - this.#at) * perSecond) / 1000) - cost;
    this.#at = now;
    return this.#left >= 0 ? 0 : Math.ceil((-this.#left * 1000) / perSecond);
  }
}

export type LinkEvents = {
  /** The hello was good. */
  ready(): void;
  message(bytes: Bytes): void;
  /** `reason` is missing where the connection just ended. */
  ended(reason?: string): void;
};

export class TcpLink {
  readonly #socket: Socket;
  readonly #own: Hello;
  readonly #events: LinkEvents;
  readonly #limits: LinkLimits;
  readonly #steady: () => number;
  readonly #reader = new FrameReader();
  readonly #bytes: Allowance;
  readonly #messages: Allowance;
  readonly #timers: NodeJS.Timeout[];
  #resume: NodeJS.Timeout | undefined;
  #isReady = false;
  #isOver = false;
  #heardAt: number;
  #fullSince: number | undefined;

  constructor(socket: Socket, own: Hello, events: LinkEvents, steady: () => number, limits: LinkLimits = LINK_LIMITS) {
    this.#socket = socket;
    this.#own = own;
    this.#events = events;
    this.#limits = limits;
    this.#steady = steady;
    const now = steady();
    this.#heardAt = now;
    this.#bytes = new Allowance(limits.bytes, now);
    this.#messages = new Allowance(limits.messages, now);
    this.#timers = [
      setTimeout(() => this.#isReady || this.end('it said no hello'), limits.helloMillis),
      setInterval(() => this.#look(), Math.min(limits.keepAliveMillis, limits.silentMillis, limits.stalledMillis)),
    ];
    socket.setNoDelay(true);
    socket.on('error', () => this.end());
    socket.on('close', () => this.end());
    socket.on('data', (piece: Buffer) => this.#read(piece));
    socket.write(frameBytes(encodeHello(own)));
  }

  send(bytes: Bytes): void {
    if (this.#isOver || !this.#isReady) return;
    // Lost: it comes again by anti-entropy where it matters.
    if (this.#socket.writableLength + bytes.length > this.#limits.queuedBytes) {
      this.#fullSince ??= this.#steady();
      return;
    }
    this.#socket.write(frameBytes(bytes));
  }

  end(reason?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    clearTimeout(this.#resume);
    this.#socket.destroy();
    this.#events.ended(reason);
  }

  #look(): void {
    const now = this.#steady();
    if (this.#socket.writableLength < this.#limits.queuedBytes / 2) this.#fullSince = undefined;
    if (now - this.#heardAt > this.#limits.silentMillis && this.#resume === undefined) this.end('it was silent');
    else if (this.#fullSince !== undefined && now - this.#fullSince > this.#limits.stalledMillis)
      this.end('it does not read');
    else this.send(new Uint8Array(0));
  }

  #read(piece: Buffer): void {
    this.#heardAt = this.#steady();
    let messages = 0;
    try {
      for (const frame of this.#reader.push(piece)) {
        messages++;
        this.#take(frame);
        if (this.#isOver) return;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.end(error.message);
      return;
    }
    const now = this.#steady();
    const millis = Math.max(this.#bytes.spend(piece.length, now), this.#messages.spend(messages, now));
    if (millis === 0) return;
    this.#socket.pause();
    this.#resume = setTimeout(() => {
      this.#resume = undefined;
      this.#socket.resume();
    }, millis);
  }

  #take(frame: Bytes): void {
    if (this.#isReady) {
      if (frame.length > 0) this.#events.message(frame);
      return;
    }
    checkHello(frame, this.#own);
    this.#isReady = true;
    this.#reader.limit = MAX_FRAME_BYTES;
    this.#events.ready();
  }
}
