/**
 * How much a server may say. Every message costs the miner time, so one that talks without end is left: a bucket of
 * messages that refills with time, and with each message of ours, which asks for answers. An honest server sends a few
 * jobs a second at most, and after a block one or two more. Pure; the time is passed in.
 */

export const FLOOD = { burst: 1_000, perSecond: 100, perMessageSent: 4 } as const;

export class FloodMeter {
  #left: number = FLOOD.burst;
  #at: number;

  constructor(now: number) {
    this.#at = now;
  }

  sent(): void {
    this.#left = Math.min(FLOOD.burst, this.#left + FLOOD.perMessageSent);
  }

  /** Whether one more message may be read. */
  received(now: number): boolean {
    this.#left = Math.min(FLOOD.burst, this.#left + (Math.max(0, now - this.#at) / 1_000) * FLOOD.perSecond);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
