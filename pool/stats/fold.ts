/**
 * Folds new work into buckets (docs/statistics.md). The accountant calls it every few seconds inside a fenced
 * transaction: pending rows go into minutes, ten minutes and hours; an hour that is over goes into the day rows that
 * charts are drawn from. Late work, after an outage, is added to its own bucket. Everything is bounded by retention.
 */
import type { Transaction } from '../database/connect.ts';
import { addTo, packBucket, unpackBucket, unpackPending, type WorkSum } from './packed-work.ts';

export const TIERS = [60, 600, 3600] as const;
export type Tier = (typeof TIERS)[number];

/** Buckets kept per tier: those that rates and charts reach (rates.ts), the one being filled, and slack for a late fold. */
const KEPT: Readonly<Record<Tier, number>> = { 60: 65, 600: 39, 3600: 30 };
/** Minutes of the pool as a whole that are kept. */
const POOL_MINUTES = 120;
/** An hour counts as over this long after its end, so that shares in flight still reach its bucket. */
const HOUR_GRACE_SECONDS = 300;
const DAY_SECONDS = 86_400;
/** Pending rows folded at once: bounds a transaction after a long outage. */
const MAX_PENDING = 500;

export type FoldOptions = {
  /** Days of charts by worker and account; the pool's own ten minutes and the operator's figures are kept as long, its hours ten times as long, its minutes two hours. */
  readonly chartDays: number;
};

export const FOLD_DEFAULTS: FoldOptions = { chartDays: 90 };

type Buckets = Map<Tier, Map<number, Map<number, WorkSum>>>;

/** Returns how many pending rows were folded; less than everything only after a long outage. */
export async function foldStats(transaction: Transaction, nowMillis: number): Promise<number> {
  const now = Math.floor(nowMillis / 1000);
  const rows = await transaction<{ packed: Buffer }[]>`delete from stats_pending where id in
    (select id from stats_pending order by id limit ${MAX_PENDING}) returning packed`;
  const [state] = await transaction<{ rolled_hour: number }[]>`insert into stats_state (rolled_hour)
    values (${Math.floor(now / 3600) - 1}) on conflict (one) do update set rolled_hour = stats_state.rolled_hour
    returning rolled_hour`;
  const rolled = (state as { rolled_hour: number }).rolled_hour;
  if (rows.length > 0) {
    const fresh = bucketsOf(rows, now);
    for (const tier of TIERS) await merge(transaction, tier, fresh.get(tier) as Map<number, Map<number, WorkSum>>, now);
    for (const [hour, sums] of fresh.get(3600) ?? []) if (hour <= rolled) await addDays(transaction, hour, sums);
    for (const tier of TIERS)
      for (const [bucket, sums] of fresh.get(tier) ?? []) await addHistory(transaction, tier, bucket, sums);
  }
  await rollHours(transaction, rolled, now);
  return rows.length;
}

/** Clocks may jump: work with a future time counts as now. */
function bucketsOf(rows: readonly { packed: Buffer }[], now: number): Buckets {
  const buckets: Buckets = new Map(TIERS.map((tier) => [tier, new Map()]));
  const thisMinute = Math.floor(now / 60);
  for (const row of rows)
    for (const { workerId, minute, shares, work } of unpackPending(row.packed)) {
      const at = Math.min(minute, thisMinute) * 60;
      for (const tier of TIERS) {
        const bucket = Math.floor(at / tier);
        const tierBuckets = buckets.get(tier) as Map<number, Map<number, WorkSum>>;
        const sums = tierBuckets.get(bucket) ?? new Map<number, WorkSum>();
        tierBuckets.set(bucket, sums);
        addTo(sums, workerId, shares, work);
      }
    }
  return buckets;
}

async function merge(
  transaction: Transaction,
  tier: Tier,
  fresh: ReadonlyMap<number, Map<number, WorkSum>>,
  now: number,
): Promise<void> {
  const oldest = Math.floor(now / tier) - KEPT[tier];
  for (const [bucket, sums] of fresh) {
    if (bucket < oldest) continue;
    const [row] = await transaction<{ packed: Buffer }[]>`select packed from stats_recent
      where tier = ${tier} and bucket = ${bucket}`;
    const merged = row === undefined ? new Map<number, WorkSum>() : unpackBucket(row.packed);
    for (const [workerId, { shares, work }] of sums) addTo(merged, workerId, shares, work);
    await transaction`insert into stats_recent (tier, bucket, version, packed)
      values (${tier}, ${bucket}, nextval('stats_versions'), ${Buffer.from(packBucket(merged))})
      on conflict (tier, bucket) do update set version = excluded.version, packed = excluded.packed`;
  }
  await transaction`delete from stats_recent where tier = ${tier} and bucket < ${oldest}`;
}

async function rollHours(transaction: Transaction, rolled: number, now: number): Promise<void> {
  const over = Math.floor((now - HOUR_GRACE_SECONDS) / 3600) - 1;
  if (over <= rolled) return;
  const rows = await transaction<{ bucket: number; packed: Buffer }[]>`select bucket, packed from stats_recent
    where tier = 3600 and bucket > ${rolled} and bucket <= ${over} order by bucket`;
  for (const { bucket, packed } of rows) await addDays(transaction, bucket, unpackBucket(packed));
  await transaction`update stats_state set rolled_hour = ${over}`;
}

async function addDays(transaction: Transaction, hour: number, sums: ReadonlyMap<number, WorkSum>): Promise<void> {
  const day = Math.floor(hour / 24);
  const index = hour - day * 24 + 1;
  const ids = [...sums.keys()];
  const works = [...sums.values()].map((sum) => String(sum.work));
  await transaction`insert into worker_days as d (worker_id, day, hours)
    select w.id, ${day}, array_fill(0::numeric, array[${index - 1}::int]) || k.work
      || array_fill(0::numeric, array[${24 - index}::int])
    from unnest(${ids}::int[], ${works}::numeric[]) as k(id, work) join workers w on w.id = k.id
    on conflict (worker_id, day) do update
      set hours[${index}::int] = d.hours[${index}::int] + excluded.hours[${index}::int]`;
  await transaction`insert into account_days as d (account_id, day, hours)
    select w.account_id, ${day}, array_fill(0::numeric, array[${index - 1}::int]) || sum(k.work)
      || array_fill(0::numeric, array[${24 - index}::int])
    from unnest(${ids}::int[], ${works}::numeric[]) as k(id, work) join workers w on w.id = k.id group by w.account_id
    on conflict (account_id, day) do update
      set hours[${index}::int] = d.hours[${index}::int] + excluded.hours[${index}::int]`;
}

/** Counts of workers and accounts are those of the whole bucket, read back from it while it is recent. */
async function addHistory(
  transaction: Transaction,
  tier: Tier,
  bucket: number,
  fresh: ReadonlyMap<number, WorkSum>,
): Promise<void> {
  const [row] = await transaction<{ packed: Buffer }[]>`select packed from stats_recent
    where tier = ${tier} and bucket = ${bucket}`;
  const all = row === undefined ? [...fresh.keys()] : [...unpackBucket(row.packed).keys()];
  const ids = [...fresh.keys()];
  const sums = [...fresh.values()];
  await transaction`insert into pool_history as h (tier, service, bucket, shares, work, workers, accounts)
    select ${tier}, f.service, ${bucket}, f.shares, f.work, a.workers, a.accounts from
      (select w.service, sum(k.shares) as shares, sum(k.work) as work
        from unnest(${ids}::int[], ${sums.map((sum) => sum.shares)}::int[], ${sums.map((sum) => String(sum.work))}::numeric[])
          as k(id, shares, work) join workers w on w.id = k.id group by w.service) f
      join (select service, count(*)::int as workers, count(distinct account_id)::int as accounts
        from workers where id = any(${all}::int[]) group by service) a on a.service = f.service
    on conflict (tier, service, bucket) do update set shares = h.shares + excluded.shares,
      work = h.work + excluded.work, workers = greatest(h.workers, excluded.workers),
      accounts = greatest(h.accounts, excluded.accounts)`;
}

/** Drops buckets that are too old for charts. Cheap when there is nothing to drop; called once an hour. */
export async function pruneStats(transaction: Transaction, options: FoldOptions, nowMillis: number): Promise<void> {
  const today = Math.floor(nowMillis / 1000 / DAY_SECONDS);
  const firstDay = today - options.chartDays;
  await transaction`delete from worker_days where day < ${firstDay}`;
  await transaction`delete from account_days where day < ${firstDay}`;
  await transaction`delete from silent_workers where since < ${new Date(firstDay * DAY_SECONDS * 1000)}`;
  const [firstMinute, firstTen] = [Math.floor(nowMillis / 60_000) - POOL_MINUTES, (firstDay * DAY_SECONDS) / 600];
  for (const table of ['pool_history', 'figure_history'])
    await transaction`delete from ${transaction(table)}
      where (tier = 60 and bucket < ${firstMinute}) or (tier = 600 and bucket < ${firstTen})`;
  await transaction`delete from pool_history where tier = 3600
    and bucket < ${((today - 10 * options.chartDays) * DAY_SECONDS) / 3600}`;
  await transaction`delete from events where at < ${new Date(nowMillis - 30 * DAY_SECONDS * 1000)}`;
}
