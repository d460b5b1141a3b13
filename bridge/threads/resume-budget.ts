/**
 * How often one session is resumed. What it was sent and what was judged of it is copied between threads, and to the shelf and back, at each reconnect: a
 * session of many shares whose client reconnects as fast as it can would take a large part of the main thread. Small sessions are never held up.
 */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { type Bucket, type BucketRate, fullBucket, refill } from '../../runtime/clients/token-bucket.ts';
import { SEEN_NUMBERS } from '../session/job-log.ts';
import type { SessionRecord } from '../session/session-record.ts';

/** In judged nonces: ten times at once a session that has as many as one can have, and then one in two seconds. */
const RATE: BucketRate = { perSecond: 12_500, burst: 250_000 };
/** Terms and runs are objects, and a nonce is eight bytes of a block. */
const NONCES_AN_OBJECT = 16;
/** Sessions that cost less are not noted. */
const LIGHT = 256;
/** Sessions that are noted; the one that was resumed longest ago is forgotten first. */
const SESSIONS = 16_384;

/** What a copy of it costs. */
export function weightOf({ jobs }: SessionRecord): number {
  if (jobs === null) return 0;
  const { terms, runs } = jobs.log;
  let weight = NONCES_AN_OBJECT * runs.length;
  for (const { seen, farm } of terms) {
    weight += NONCES_AN_OBJECT;
    for (const [, nonces] of seen) weight += NONCES_AN_OBJECT + nonces.length;
    // Each may be on a body of its own, which is an object again where it is resumed.
    if (farm !== null) weight += NONCES_AN_OBJECT * (farm.spent.length + farm.seen.length / SEEN_NUMBERS);
  }
  return weight;
}

export class ResumeBudget {
  readonly #buckets = new BoundedMap<string, Bucket>(SESSIONS);

  has(id: string, nowMillis: number): boolean {
    const bucket = this.#buckets.get(id);
    return bucket === undefined || refill(bucket, RATE, nowMillis).tokens > 0;
  }

  /** After it was resumed: what it costs is not known before. */
  charge(record: SessionRecord, nowMillis: number): void {
    const weight = weightOf(record);
    if (weight < LIGHT) return;
    const { id } = record;
    const { tokens } = refill(this.#buckets.get(id) ?? fullBucket(RATE, nowMillis), RATE, nowMillis);
    this.#buckets.delete(id);
    this.#buckets.set(id, { tokens: tokens - weight, atMillis: nowMillis });
  }
}
