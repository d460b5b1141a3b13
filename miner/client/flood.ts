/**
 * How much a server may send. Every message costs the miner time, so one that sends without end is left: a bucket of
 * messages that refills with time, and with each message of ours, which asks for answers. An honest server sends a few
 * jobs a second at most, and after a block one or two more. Pure; the time is passed in.
 */
import { type Bucket, fullBucket, give, refill, take } from '../../runtime/token-bucket.ts';

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
