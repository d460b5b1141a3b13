/**
 * The pool over time as its operator sees it: shares by verdict, the books' lag, payouts under way, the wallet's balance, connections of each front end. The accountant alone notes them, twice a minute,
 * and a row keeps the worst of its time: what was wrong for half a minute is still seen in a month. pruneStats (fold.ts) bounds the rows.
 */
import type { Sql, Transaction } from '../database/connect.ts';
import type { Tier } from './fold.ts';

/** Hours are made of ten minutes when they are read. */
const NOTED = [60, 600] as const;

const LAG = 'books_behind';
const PAYOUTS = 'payouts_open';
const WALLET = 'wallet_spendable';
/** Followed by the verdict. Its value is the total since the pool began: what a time adds is the difference, whoever kept the books meanwhile. */
const REFUSED = 'refused/';
/** Followed by the name of the front end. */
const CONNECTIONS = 'connections/';

/** What is not known is not noted: the chart has a gap there. */
export type KnownFigures = {
  /** The newest finalized cut of the accountant's node. */
  readonly head: number | undefined;
  /** Atoms. */
  readonly spendable: bigint | undefined;
  /** By front end, of those that are heard of. */
  readonly connections: ReadonlyMap<string, number>;
};

export async function noteFigures(
  transaction: Transaction,
  { head, spendable, connections }: KnownFigures,
  nowMillis: number,
): Promise<void> {
  const seconds = Math.floor(nowMillis / 1000);
  const known = spendable === undefined ? null : String(spendable);
  await transaction`insert into figure_history as h (tier, bucket, figure, value)
    select t.tier, ${seconds}::int / t.tier, f.figure, f.value from unnest(${[...NOTED]}::int[]) as t(tier), (
      select ${REFUSED}::text || result as figure, count as value from refused_shares
      union all select ${PAYOUTS}, count(*) from payouts where state in ('reserved', 'submitting', 'submitted')
      union all select ${LAG}, greatest(0, ${head ?? null}::bigint - value::bigint) from settings
        where name = 'chain_height' and ${head ?? null}::bigint is not null
      union all select ${CONNECTIONS} || name, here from
        unnest(${[...connections.keys()]}::text[], ${[...connections.values()]}::bigint[]) as c(name, here)
      union all select ${WALLET}, ${known}::bigint where ${known}::bigint is not null) f
    on conflict (tier, bucket, figure) do update set value =
      case when h.figure = ${WALLET} or starts_with(h.figure, ${CONNECTIONS}) then least(h.value, excluded.value) else greatest(h.value, excluded.value) end`;
}

export type FigurePoint = {
  readonly bucket: number;
  readonly accepted: number;
  /** By verdict, where there were any. */
  readonly refused: readonly { readonly result: string; readonly count: number }[];
  readonly booksBehind: number | null;
  readonly payoutsOpen: number | null;
  readonly walletSpendable: bigint | null;
  /** Those that were heard of. */
  readonly frontEnds: readonly { readonly name: string; readonly connections: number }[];
};

/** From a bucket of a tier on; a time in which nobody kept the books has no point, and what was refused in it counts in the next one. */
export async function readFigures(sql: Sql, tier: Tier, first: number): Promise<FigurePoint[]> {
  const noted = tier === 60 ? 60 : 600;
  const times = tier / noted;
  const rows = await sql<
    { bucket: number; figure: string; value: bigint }[]
  >`select bucket / ${times}::int as bucket, figure,
      case when figure = ${WALLET} or starts_with(figure, ${CONNECTIONS}) then min(value) else max(value) end as value
    from figure_history
    where tier = ${noted} and bucket >= ${(first - 1) * times} group by 1, 2 order by 1, 2`;
  const shares = await sql<{ bucket: number; shares: string }[]>`select bucket, sum(shares)::text as shares
    from pool_history where tier = ${tier} and bucket >= ${first} group by bucket`;
  const accepted = new Map(shares.map((row) => [row.bucket, Number(row.shares)]));
  const buckets = new Map<number, Map<string, bigint>>();
  for (const { bucket, figure, value } of rows) {
    const figures = buckets.get(bucket) ?? new Map<string, bigint>();
    buckets.set(bucket, figures.set(figure, value));
  }
  const points: FigurePoint[] = [];
  let before: ReadonlyMap<string, bigint> | undefined;
  for (const [bucket, figures] of buckets) {
    const numberOf = (figure: string) => (figures.has(figure) ? Number(figures.get(figure)) : null);
    if (bucket >= first)
      points.push({
        bucket,
        accepted: accepted.get(bucket) ?? 0,
        refused: added(figures, before),
        booksBehind: numberOf(LAG),
        payoutsOpen: numberOf(PAYOUTS),
        walletSpendable: figures.get(WALLET) ?? null,
        frontEnds: named(figures, CONNECTIONS).map(([name, count]) => ({ name, connections: Number(count) })),
      });
    before = figures;
  }
  return points;
}

const named = (figures: ReadonlyMap<string, bigint>, kind: string): [string, bigint][] =>
  [...figures].flatMap(([figure, value]) => (figure.startsWith(kind) ? [[figure.slice(kind.length), value]] : []));

/** Nothing in the first time of all: the totals may be years old. */
function added(figures: ReadonlyMap<string, bigint>, before: ReadonlyMap<string, bigint> | undefined) {
  if (before === undefined) return [];
  return named(figures, REFUSED).flatMap(([result, total]) => {
    const count = Number(total - (before.get(REFUSED + result) ?? 0n));
    return count > 0 ? [{ result, count }] : [];
  });
}
