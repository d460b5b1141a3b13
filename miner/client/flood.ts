/**
 * Rate limit for messages of a server. Every message costs the miner time, so a server that floods is disconnected: a
 * token bucket that refills with time, and with each of our messages, which causes answers. An honest server sends a
 * few jobs a second at most, and after a block one or two more. Pure; the time is passed in.
 */
import { type Bucket, fullBucket, give, refill, take } from '../../runtime/clients/token-bucket.ts';

export const FLOOD = { burst: 1_000, perSecond: 100, perMessageSent: 4 } as const;

export class FloodMeter {
  #bucket: Bucket;

  constructor(now: number) {
    this.#bucket = fullBucket(FLOOD, now);
  }

  sent(): void {
    this.#bucket = give(this.#bucket, FLOOD, FLOOD.perMessageSent);
  }

  /** Whether one more message may be read. */
  received(now: number): boolean {
    const left = take(this.#bucket, FLOOD, now);
    this.#bucket = left ?? refill(this.#bucket, FLOOD, now);
    return left !== undefined;
  }
}
