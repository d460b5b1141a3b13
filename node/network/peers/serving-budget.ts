/**
 * The budget for requests of peers: time of the main thread and bytes. The cost of requests differs by a factor of a
 * thousand, so an answer is charged by the time it took. Recently active peers share the budget; a peer that used up
 * its share is answered `busy`. Pure, with the clock passed in.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { clientKey, isLoopback } from '../../../runtime/clients/client-address.ts';
import { type Bucket, type BucketRate, fullBucket, refill } from '../../../runtime/clients/token-bucket.ts';
import type { PeerName } from '../thread/host-types.ts';
import { ipOf } from './peer-address.ts';

/** Milliseconds of the main thread in a second, of all peers and of one. A node that syncs uses about 25 for 96 cuts with 2 MiB of blocks. */
const MILLIS = { all: 300, one: 150 };
const BYTES: BucketRate = { perSecond: 8 * 1_024 * 1_024, burst: 64 * 1_024 * 1_024 };
/** Bytes of snapshots, for all peers together: they are long, but cost the main thread hardly anything. */
const PART_BYTES: BucketRate = { perSecond: 16 * 1_024 * 1_024, burst: 32 * 1_024 * 1_024 };
/** Unused budget is saved up for this long, and a peer counts as active for this long. */
const SAVED_SECONDS = 10;
const MAX_HOLDERS = 1_024;

type Used = { millis: Bucket; bytes: Bucket; askedAt: number };

const less = ({ tokens, atMillis }: Bucket, cost: number): Bucket => ({ tokens: tokens - cost, atMillis });

export class ServingBudget {
  readonly #steady: () => number;
  /** Those at one address share. */
  readonly #holders = new Map<PeerName, string>();
  /** Kept when a peer disconnects: a reconnect does not reset it. */
  readonly #used = new BoundedMap<string, Used>(MAX_HOLDERS);

  #parts: Bucket;

  constructor(steady: () => number) {
    this.#steady = steady;
    this.#parts = fullBucket(PART_BYTES, steady());
  }

  joined(peer: PeerName, address: string): void {
    const ip = ipOf(address);
    this.#holders.set(peer, ip === undefined || isLoopback(ip) ? peer : clientKey(ip));
  }

  left(peer: PeerName): void {
    this.#holders.delete(peer);
  }

  #rate(now: number): BucketRate {
    let active = 1;
    for (const { askedAt } of this.#used.values()) if (now - askedAt < SAVED_SECONDS * 1_000) active++;
    const perSecond = Math.min(MILLIS.one, MILLIS.all / active);
    return { perSecond, burst: perSecond * SAVED_SECONDS };
  }

  #of(peer: PeerName): Used {
    const now = this.#steady();
    const holder = this.#holders.get(peer) ?? peer;
    const rate = this.#rate(now);
    const known = this.#used.use(holder);
    const used = {
      millis: refill(known?.millis ?? fullBucket(rate, now), rate, now),
      bytes: refill(known?.bytes ?? fullBucket(BYTES, now), BYTES, now),
      askedAt: now,
    };
    this.#used.set(holder, used);
    return used;
  }

  mayAsk(peer: PeerName): boolean {
    const { millis, bytes } = this.#of(peer);
    return millis.tokens > 0 && bytes.tokens > 0;
  }

  mayReadParts(): boolean {
    this.#parts = refill(this.#parts, PART_BYTES, this.#steady());
    return this.#parts.tokens > 0;
  }

  chargePart(bytes: number): void {
    this.#parts = less(this.#parts, bytes);
  }

  charge(peer: PeerName, millis: number, bytes: number): void {
    const used = this.#of(peer);
    used.millis = less(used.millis, millis);
    used.bytes = less(used.bytes, bytes);
  }
}
