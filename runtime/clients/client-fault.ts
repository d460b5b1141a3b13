/**
 * Unexpected errors while one client is served. Such an error ends only that client, is logged with its stack, and is
 * counted: each is a bug in this program, whatever the client sent. In the tests the count stays zero.
 */
import { type MonotonicClock, monotonicMillis } from '../clock/clock.ts';
import { InvariantError } from '../invariant.ts';
import type { Logger } from '../log/log.ts';

/** A client that triggers such a bug must not fill the disk: this many lines a minute, the rest is only counted. */
const LINES_PER_MINUTE = 20;
const MINUTE_MILLIS = 60_000;

export class ClientFaults {
  readonly #now: MonotonicClock;
  #forward: ((door: string, error: Error) => void) | undefined;
  #total = 0;
  #minute = Number.NEGATIVE_INFINITY;
  #lines = 0;
  /** The newest fault, to find out why the count is not zero. */
  last: unknown;

  constructor(now: MonotonicClock = monotonicMillis) {
    this.#now = now;
  }

  get total(): number {
    return this.#total;
  }

  /** In a thread: the main thread counts and logs. */
  forwardTo(forward: (door: string, error: Error) => void): void {
    this.#forward = forward;
  }

  /** The caller ends the client. A fatal error is thrown again. */
  report(door: string, error: unknown, log: Pick<Logger, 'error'>): void {
    if (error instanceof InvariantError) throw error;
    if (this.#forward !== undefined) {
      this.#forward(door, error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#total++;
    this.last = error;
    const now = this.#now();
    if (now - this.#minute >= MINUTE_MILLIS) {
      this.#minute = now;
      this.#lines = 0;
    }
    if (this.#lines++ >= LINES_PER_MINUTE) return;
    log.error('a client was ended by a defect of this program', { door, error, stack: (error as Error | null)?.stack });
  }

  /** Returns the count and resets it. */
  take(): number {
    const total = this.#total;
    this.#total = 0;
    return total;
  }
}

/** One count for all listeners of this process. */
export const clientFaults = new ClientFaults();
