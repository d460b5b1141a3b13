/**
 * The budget for requests of peers: time of the main thread and bytes. The cost of requests differs by a factor of a
 * thousand, so an answer is charged by the time it took. Peers share the budget by what they use, not by how many they
 * are: who asks little takes nothing from others. A peer that used up its share is answered `busy`. Pure, with the clock
 * passed in.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { clientKey, isLoopback } from '../../../runtime/clients/client-address.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import { type Bucket, type BucketRate, fullBucket, refill } from '../../../runtime/clients/token-bucket.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { CHUNK_BYTES } from '../snapshots/snapshot-messages.ts';
import type { PeerName } from '../thread/host-types.ts';
import { ipOf } from './peer-address.ts';

/**
 * Milliseconds of the main thread in a second, of all peers and of one; unused ones are saved up for some seconds. A
 * node that syncs uses about 25 for 96 cuts with 2 MiB of blocks.
 */
const MILLIS = { all: { perSecond: 300, burst: 6_000 }, one: { perSecond: 150, burst: 1_500 } } as const;
/** What the first answer is taken to cost. Later ones are taken for as dear as those before, so that room is left for those that used less. */
const FIRST_MILLIS = 5;
const CHEAPER = 0.9;
const BYTES: BucketRate = { perSecond: 8 * 1_024 * 1_024, burst: 64 * 1_024 * 1_024 };
/** Bytes of snapshots, for all peers together: they are long, but cost the main thread hardly anything. Saved up are some answers for each of fifty. */
const PART_BYTES: BucketRate = { perSecond: 16 * 1_024 * 1_024, burst: 128 * 1_024 * 1_024 };
const MAX_HOLDERS = 1_024;

type Used = { millis: Bucket; bytes: Bucket; dearest: number };

const less = ({ tokens, atMillis }: Bucket, cost: number): Bucket => ({ tokens: tokens - cost, atMillis });

export class ServingBudget {
  readonly #steady: SteadyClock;
  /** Those at one address share. Both are kept when a peer disconnects: what it asked for may still be under way, and a reconnect does not reset it. */
  readonly #holders = new BoundedMap<PeerName, string>(MAX_HOLDERS);
  readonly #used = new BoundedMap<string, Used>(MAX_HOLDERS);

  readonly #millis: FairShare;
  readonly #parts: FairShare;

  constructor(steady: SteadyClock) {
    this.#steady = steady;
    this.#millis = new FairShare(MILLIS.all, steady());
    this.#parts = new FairShare(PART_BYTES, steady());
  }

  joined(peer: PeerName, address: string): void {
    const ip = ipOf(address);
    this.#holders.set(peer, ip === undefined || isLoopback(ip) ? peer : clientKey(ip));
  }

  /** The address that it shares with others; of one on this machine its name. */
  holderOf(peer: PeerName): string {
    return this.#holders.use(peer) ?? peer;
  }

  #of(holder: string, now: number): Used {
    const known = this.#used.use(holder);
    const used = {
      millis: refill(known?.millis ?? fullBucket(MILLIS.one, now), MILLIS.one, now),
      bytes: refill(known?.bytes ?? fullBucket(BYTES, now), BYTES, now),
      dearest: known?.dearest ?? FIRST_MILLIS,
    };
    this.#used.set(holder, used);
    return used;
  }

  mayAsk(peer: PeerName): boolean {
    const [holder, now] = [this.holderOf(peer), this.#steady()];
    const { millis, bytes, dearest } = this.#of(holder, now);
    return millis.tokens > 0 && bytes.tokens > 0 && this.#millis.has(holder, now, dearest);
  }

  mayReadPart(peer: PeerName): boolean {
    return this.#parts.has(this.holderOf(peer), this.#steady(), CHUNK_BYTES);
  }

  chargePart(peer: PeerName, bytes: number): void {
    this.#parts.charge(this.holderOf(peer), this.#steady(), bytes);
  }

  charge(peer: PeerName, millis: number, bytes: number): void {
    const [holder, now] = [this.holderOf(peer), this.#steady()];
    const used = this.#of(holder, now);
    used.millis = less(used.millis, millis);
    used.bytes = less(used.bytes, bytes);
    used.dearest = Math.max(millis, CHEAPER * used.dearest);
    this.#millis.charge(holder, now, millis);
  }
}
