/**
 * Hash rates of every worker, account and service over 10 minutes, an hour and a day, from work sums. Each instance
 * reads the buckets that changed since its last call and computes all rates at once; nothing is kept that a restart
 * could lose. Rates are for display: they are numbers, never money.
 */
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Sql } from '../database/connect.ts';
import { TIERS, type Tier } from './fold.ts';
import { unpackBucket } from './packed-work.ts';

export type Rates = { readonly tenMinutes: number; readonly hour: number; readonly day: number };

/** How many buckets of a tier make up the window of its rate. */
const SPAN: Readonly<Record<Tier, number>> = { 60: 10, 600: 6, 3600: 24 };
/** How many a chart reaches back to: an hour of minutes, six hours of ten minutes, a day of hours. */
export const HELD: Readonly<Record<Tier, number>> = { 60: 60, 600: 36, 3600: 24 };
const NONE: Rates = { tenMinutes: 0, hour: 0, day: 0 };
/** Minimum time for a rate: a single first share gives none. */
const LEAST_SECONDS = 60;

/** `workers` ascends; `slots` are the places of the same workers in the sums of all rates. */
type Bucket = { readonly workers: Uint32Array; slots: Uint32Array; readonly work: Float64Array };
type Summed = { -readonly [Window in keyof Rates]: Rates[Window] };
export type WorkerRate = {
  readonly workerId: number;
  readonly accountId: number;
  readonly service: number;
  readonly rates: Rates;
};

/**
 * The part of a bucket inside a window that ends now: the one being filled and the whole ones before it count in full, the
 * oldest by the share of it that the window still covers.
 */
export function coverage(tier: Tier, bucket: number, nowSeconds: number): number {
  const age = Math.floor(nowSeconds / tier) - bucket;
  if (age < 0 || age > SPAN[tier]) return 0;
  return age === SPAN[tier] ? 1 - (nowSeconds % tier) / tier : 1;
}

/** Seconds covered by a window: no window reaches back before the first share. */
export function windowSeconds(seconds: number, since: number | undefined, now: number): number {
  if (since === undefined || since >= now) return seconds;
  return Math.min(seconds, Math.max(LEAST_SECONDS, now - since));
}

/** Rates of a pool that began at `poolSince`, for one of its miners that joined at `since`. */
export function ratesSince(rates: Rates, poolSince: number | undefined, since: number, now: number): Rates {
  const [tenMinutes, hour, day] = TIERS.map((tier) => {
    const seconds = tier * SPAN[tier];
    return windowSeconds(seconds, poolSince, now) / windowSeconds(seconds, Math.max(since, poolSince ?? 0), now);
  }) as [number, number, number];
  return { tenMinutes: rates.tenMinutes * tenMinutes, hour: rates.hour * hour, day: rates.day * day };
}

export class RateBoard {
  readonly #sql: Sql;
  readonly #now: SteadyClock;
  readonly #buckets = new Map<Tier, Map<number, Bucket>>(TIERS.map((tier) => [tier, new Map()]));
  /** The slot of each worker seen, counted from 0: sums over a million rows of buckets are then plain array additions. */
  readonly #slots = new Map<number, number>();
  readonly #slotWorkers: number[] = [];
  readonly #owners = new Map<number, { accountId: number; service: number }>();
  /** Workers seen whose owner is not known yet. */
  readonly #unowned = new Set<number>();
  readonly #workersOf = new Map<number, number[]>();
  #version = 0n;
  #firstAccount: number | undefined;
  #since: number | undefined;
  #workers = new Map<number, WorkerRate>();
  #accounts: ReadonlyMap<number, { readonly rates: Rates }> = new Map();
  #services: ReadonlyMap<number, Rates & { readonly workers: number; readonly accounts: number }> = new Map();
  /** Accounts by rate, highest first. */
  #ranking: readonly { accountId: number; rates: Rates; workers: number }[] = [];

  constructor(dependencies: { sql: Sql; now: SteadyClock }) {
    this.#sql = dependencies.sql;
    this.#now = dependencies.now;
  }

  /** The database was replaced by an older copy: an id may now belong to another account. */
  forget(): void {
    this.#version = 0n;
    for (const buckets of this.#buckets.values()) buckets.clear();
    this.#slots.clear();
    this.#slotWorkers.length = 0;
    this.#owners.clear();
    this.#unowned.clear();
    this.#workersOf.clear();
    this.#firstAccount = undefined;
  }

  /** Approximate time of the pool's first share, in seconds; undefined before it. */
  get since(): number | undefined {
    return this.#since;
  }

  /** Linear in the workers of the buckets that changed, and in pieces: nobody else waits for a board of many. */
  async refresh(): Promise<void> {
    const rows = await this.#sql<{ tier: Tier; bucket: number; version: bigint; packed: Buffer }[]>`select tier, bucket,
      version, packed from stats_recent where version > ${this.#version} order by version`;
    for (const { tier, bucket, version, packed } of rows) {
      const sums = unpackBucket(packed);
      const workers = Uint32Array.from(sums.keys());
      this.#buckets.get(tier)?.set(bucket, {
        workers,
        slots: workers.map((workerId) => this.#slotOf(workerId)),
        work: Float64Array.from(sums.values(), (sum) => Number(sum.work)),
      });
      this.#version = version;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const now = this.#now() / 1000;
    let isOver = false;
    for (const [tier, buckets] of this.#buckets)
      for (const bucket of buckets.keys())
        if (bucket < Math.floor(now / tier) - HELD[tier]) isOver = buckets.delete(bucket);
    if (isOver) this.#prune();
    if (this.#unowned.size > 0) await this.#learn([...this.#unowned]);
    if (this.#firstAccount === undefined) {
      const [first] = await this.#sql<{ at: Date }[]>`select created_at as at from accounts order by id limit 1`;
      this.#firstAccount = first === undefined ? undefined : first.at.getTime() / 1000;
    }
    this.#since = this.#firstShare(now);
    this.#compute(now);
  }

  /** Miners connect some time before their first share: in a new pool, its first minute with work is more accurate. */
  #firstShare(now: number): number | undefined {
    const account = this.#firstAccount;
    if (account === undefined || now - account >= HELD[60] * 60) return account;
    const minutes = [...(this.#buckets.get(60) as Map<number, Bucket>).keys()];
    return minutes.length === 0 ? undefined : Math.max(account, Math.min(...minutes) * 60);
  }

  /** Forgets workers that are in no bucket any more, once they are half of all. */
  #prune(): void {
    const all = [...this.#buckets.values()].flatMap((buckets) => [...buckets.values()]);
    const live = new Set<number>();
    for (const { workers } of all) for (const workerId of workers) live.add(workerId);
    if (this.#slotWorkers.length < 2 * live.size) return;
    this.#slots.clear();
    this.#slotWorkers.length = 0;
    this.#workersOf.clear();
    for (const workerId of this.#unowned) if (!live.has(workerId)) this.#unowned.delete(workerId);
    for (const [workerId, { accountId }] of this.#owners)
      if (live.has(workerId)) held(this.#workersOf, accountId, () => []).push(workerId);
      else this.#owners.delete(workerId);
    for (const bucket of all) bucket.slots = bucket.workers.map((workerId) => this.#slotOf(workerId));
  }

  /** Workers that it knows of. */
  get size(): number {
    return this.#slotWorkers.length;
  }

  #slotOf(workerId: number): number {
    const known = this.#slots.get(workerId);
    if (known !== undefined) return known;
    if (!this.#owners.has(workerId)) this.#unowned.add(workerId);
    this.#slots.set(workerId, this.#slotWorkers.length);
    return this.#slotWorkers.push(workerId) - 1;
  }

  async #learn(ids: readonly number[]): Promise<void> {
    const rows = await this.#sql<{ id: number; account_id: number; service: number }[]>`select id, account_id, service
      from workers where id = any(${[...ids]}::int[])`;
    for (const row of rows) {
      this.#unowned.delete(row.id);
      this.#owners.set(row.id, { accountId: row.account_id, service: row.service });
      held(this.#workersOf, row.account_id, () => []).push(row.id);
    }
  }

  #compute(now: number): void {
    const sums = TIERS.map((tier) => {
      const sum = new Float64Array(this.#slotWorkers.length);
      for (const [bucket, { slots, work }] of this.#buckets.get(tier) as Map<number, Bucket>) {
        const part = coverage(tier, bucket, now) / windowSeconds(tier * SPAN[tier], this.#since, now);
        if (part === 0) continue;
        for (let at = 0; at < slots.length; at++)
          sum[slots[at] as number] = (sum[slots[at] as number] as number) + (work[at] as number) * part;
      }
      return sum;
    });
    this.#publish(sums as [Float64Array, Float64Array, Float64Array]);
  }

  #publish([tenMinutes, hours, days]: readonly [Float64Array, Float64Array, Float64Array]): void {
    const workers = new Map<number, WorkerRate>();
    const accounts = new Map<number, { accountId: number; rates: Summed; workers: number }>();
    const services = new Map<number, Summed & { workers: number; accounts: number }>();
    const activeIn = new Map<number, Set<number>>();
    for (const [slot, workerId] of this.#slotWorkers.entries()) {
      const rates: Rates = {
        tenMinutes: tenMinutes[slot] as number,
        hour: hours[slot] as number,
        day: days[slot] as number,
      };
      const owner = this.#owners.get(workerId);
      if (owner === undefined || rates.tenMinutes + rates.hour + rates.day === 0) continue;
      const { accountId, service } = owner;
      workers.set(workerId, { workerId, accountId, service, rates });
      const account = held(accounts, accountId, () => ({ accountId, rates: { ...NONE }, workers: 0 }));
      const total = held(services, service, () => ({ ...NONE, workers: 0, accounts: 0 }));
      add(account.rates, rates);
      add(total, rates);
      // Silent for ten minutes: offline, and not counted.
      if (rates.tenMinutes === 0) continue;
      account.workers++;
      total.workers++;
      total.accounts = held(activeIn, service, () => new Set<number>()).add(accountId).size;
    }
    this.#workers = workers;
    this.#accounts = accounts;
    this.#services = services;
    this.#ranking = [...accounts.values()].sort((a, b) => b.rates.hour - a.rates.hour || a.accountId - b.accountId);
  }

  worker(workerId: number): Rates {
    return this.#workers.get(workerId)?.rates ?? NONE;
  }

  account(accountId: number): Rates {
    return this.#accounts.get(accountId)?.rates ?? NONE;
  }

  service(service: number): Rates & { readonly workers: number; readonly accounts: number } {
    return this.#services.get(service) ?? { ...NONE, workers: 0, accounts: 0 };
  }

  /** Work by bucket of the buckets in memory, the one being filled included. */
  workOfWorker(tier: Tier, workerId: number): Map<number, number> {
    return this.#work(tier, [workerId]);
  }

  workOfAccount(tier: Tier, accountId: number): Map<number, number> {
    return this.#work(tier, this.#workersOf.get(accountId) ?? []);
  }

  #work(tier: Tier, workerIds: readonly number[]): Map<number, number> {
    const sums = new Map<number, number>();
    for (const [bucket, { workers, work }] of this.#buckets.get(tier) as Map<number, Bucket>)
      for (const workerId of workerIds) {
        const at = indexOf(workers, workerId);
        if (at !== -1) sums.set(bucket, (sums.get(bucket) ?? 0) + (work[at] as number));
      }
    return sums;
  }

  get ranking(): readonly { readonly accountId: number; readonly rates: Rates; readonly workers: number }[] {
    return this.#ranking;
  }
}

/** The value under a key, created if missing. */
function held<V>(map: Map<number, V>, key: number, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function add(sum: Summed, rates: Rates): void {
  sum.tenMinutes += rates.tenMinutes;
  sum.hour += rates.hour;
  sum.day += rates.day;
}

/** Index of a value in an ascending array; -1 if it is missing. */
function indexOf(values: Uint32Array, wanted: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return values[low] === wanted ? low : -1;
}
