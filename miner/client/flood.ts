/**
 * Rate limit for messages of a server. Every message costs the miner time, so a server that floods is disconnected: a
 * token bucket that refills with time, and with each of our messages, which causes answers. An honest server sends a
 * few jobs a second at most, after a block one or two more, and to a farm the receipts of all rigs at once. Pure; the time is passed in.
 */
import { type Bucket, type BucketRate, fullBucket, give, refill, take } from '../../runtime/clients/token-bucket.ts';

export const FLOOD = { burst: 1_000, perSecond: 100, perMessageSent: 4, perRig: 4 } as const;

export class FloodMeter {
  #rate: BucketRate = FLOOD;
  #bucket: Bucket;

  constructor(now: number) {
    this.#bucket = fullBucket(FLOOD, now);
  }

  /** The session is that of a farm with so many rigs. */
  farm(rigs: number): void {
    const more = FLOOD.perRig * rigs;
    this.#rate = { ...FLOOD, burst: FLOOD.burst + more };
    this.#give(more);
  }

  sent(): void {
    this.#give(FLOOD.perMessageSent);
  }

  /** The message was the answer to a share that waited: there are only as many as were sent. */
  answered(): void {
    this.#give(1);
  }

  #give(messages: number): void {
    this.#bucket = give(this.#bucket, this.#rate, messages);
  }

  /** Whether one more message may be read. */
  received(now: number): boolean {
    const left = take(this.#bucket, this.#rate, now);
    this.#bucket = left ?? refill(this.#bucket, this.#rate, now);
    return left !== undefined;
  }
}
