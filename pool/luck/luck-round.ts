/**
 * Counts, slice by slice, the blocks that each account should have found and those that it found (pool/luck/withholding.ts). Reads raw shares, blocks and the
 * node's targets; writes only its own tables. A slice is counted when the next one is closed as well: by then its blocks are in the books.
 *
 * Every doubt is in favour of the account. What is expected by the test is taken from the highest block work of the cuts that a job may build on. A share that came
 * late, or whose cut the node no longer shows, is not expected to be a block; a block that came late counts before anybody is named; and a block
 * whose finder is not on record counts for everyone who worked in its slice.
 */

import type { Chain } from '../accountant/chain.ts';
import { UNKNOWN_FINDER } from '../books/intake.ts';
import { byteaTexts, type Sql, type Transaction } from '../database/connect.ts';
import { type Evidence, FRACTIONS, LOG_LINE, logEvidence, NO_EVIDENCE, sureBlocks, weigh } from './withholding.ts';

/** A job builds on the newest cut, or on one drawn among this many (docs/anchors.md). */
const ANCHOR_REACH = 80;
/** Slices counted in one round: after an outage the rest follows in the next. */
const MAX_SLICES = 20;
/** The account of a service as a whole. */
export const EVERYBODY = 0;

export type LuckOptions = { readonly services: readonly number[]; readonly sliceCuts: number };

export type LuckDependencies = {
  readonly sql: Sql;
  readonly chain: Pick<Chain, 'blockWorks'>;
  /** A fenced transaction of the books. */
  readonly run: <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>;
};

type Place = { readonly service: number; readonly slice: number; readonly first: number };
type Worked = {
  account: number;
  work: string;
  expected: number;
  sure: number;
  cuts: number;
  found: number;
  /** Blocks of the slice whose finder is not on record. */
  unknown: number;
};
type Row = { account: number; found: number; evidence: Buffer };

const packed = ({ logs, expected, begun }: Evidence): Buffer =>
  Buffer.from(Float64Array.from([...logs, expected, begun]).buffer);

function unpacked(bytes: Buffer): Evidence {
  const values = Array.from({ length: FRACTIONS.length + 2 }, (_, i) => bytes.readDoubleLE(8 * i));
  return {
    logs: values.slice(0, FRACTIONS.length),
    expected: values.at(-2) as number,
    begun: values.at(-1) as number,
  };
}

export class LuckRound {
  readonly #options: LuckOptions;
  readonly #dependencies: LuckDependencies;

  constructor(options: LuckOptions, dependencies: LuckDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  /** Counts the slices that are due; how many. */
  async round(): Promise<number> {
    const { sql } = this.#dependencies;
    let counted = 0;
    for (const service of this.#options.services) {
      const [closed] = await sql<{ newest: number | null }[]>`select max(number) as newest from slices
        where service = ${service} and closed_height is not null`;
      const last = (closed?.newest ?? 0) - 1;
      if (last < 0) continue;
      const [state] = await sql<{ first: number; through: number }[]>`select first, through from luck_slices
        where service = ${service}`;
      // A pool that is new to this begins with the present: of its past it may not have all raw shares. Blocks of its first jobs may stand on older cuts.
      const first = state?.first ?? last - Math.ceil(ANCHOR_REACH / this.#options.sliceCuts);
      const from = state === undefined ? last : state.through + 1;
      for (let slice = from; slice <= Math.min(last, from + MAX_SLICES - 1); slice++, counted++)
        await this.#count({ service, slice, first });
    }
    return counted;
  }

  async #count(place: Place): Promise<void> {
    const worked = await this.#worked(place);
    await this.#dependencies.run(async (transaction) => {
      await write(transaction, place, worked);
      await transaction`insert into luck_slices (service, first, through)
        values (${place.service}, ${place.first}, ${place.slice})
        on conflict (service) do update set through = excluded.through`;
    });
  }

  async #worked({ service, slice }: Place): Promise<Worked[]> {
    const { sql } = this.#dependencies;
    const [first, last] = [slice * this.#options.sliceCuts, (slice + 1) * this.#options.sliceCuts - 1];
    const [some] = await sql`select from shares where anchor_height between ${first} and ${last} limit 1`;
    const cuts = some === undefined ? [] : await this.#blockWorks(first, last);
    return sql<Worked[]>`with cuts as (select * from unnest(${cuts.map((cut) => cut.height)}::bigint[],
          ${cuts.map((cut) => cut.own).map(String)}::text[]::float8[], ${cuts.map((cut) => cut.highest).map(String)}::text[]::float8[]) as c(height, own, highest)),
        worked as (select s.account_id, sum(s.work) as work, sum(least(1, s.work::float8 / c.own)) as expected,
            sum(least(1, s.work::float8 / c.highest)) as sure, count(distinct s.anchor_height)::int as cuts
          from shares s join cuts c on c.height = s.anchor_height
          where s.service = ${service} and s.anchor_height between ${first} and ${last} group by s.account_id),
        found as (select account_id, count(*)::int as found from blocks
          where service = ${service} and slice = ${slice} group by account_id)
      select account_id as account, coalesce(w.work, 0)::text as work, coalesce(w.expected, 0) as expected,
        coalesce(w.sure, 0) as sure, coalesce(w.cuts, 0) as cuts, coalesce(f.found, 0) as found,
        (select count(*)::int from blocks b join workers k on k.id = b.worker_id
          where b.service = ${service} and b.slice = ${slice} and k.name = ${UNKNOWN_FINDER}) as unknown
      from worked w full join found f using (account_id)`;
  }

  /** Of each cut, its own block work and the highest of those that a job published at it may build on; only where all of these are known. */
  async #blockWorks(first: number, last: number) {
    const from = Math.max(0, first - ANCHOR_REACH);
    const works = (await this.#dependencies.chain.blockWorks?.(from, last)) ?? new Map<number, bigint>();
    const cuts: { height: number; own: number; highest: number }[] = [];
    for (let height = first; height <= last; height++) {
      const reach = Array.from({ length: Math.min(height, ANCHOR_REACH) + 1 }, (_, age) => works.get(height - age));
      const highest = reach.reduce((most, work) => Math.max(most, Number(work)), 0);
      if (!Number.isNaN(highest)) cuts.push({ height, own: Number(reach[0]), highest });
    }
    return cuts;
  }
}

/** All of a service as one account: somebody who changes its address before each is named still lowers the luck of all. */
function everybody(worked: readonly Worked[]): Worked {
  const sum = (of: (each: Worked) => number) => worked.reduce((all, each) => all + of(each), 0);
  return {
    account: EVERYBODY,
    work: String(worked.reduce((all, { work }) => all + BigInt(work), 0n)),
    expected: sum(({ expected }) => expected),
    // What each surely could have sent; no more is taken out for all together.
    sure: sum(({ sure, found, cuts }) => sureBlocks(sure, found, cuts)),
    cuts: Number.POSITIVE_INFINITY,
    found: sum(({ found }) => found),
    // These are under the pool's own account, which is among those found.
    unknown: 0,
  };
}

async function write(transaction: Transaction, place: Place, worked: readonly Worked[]): Promise<void> {
  if (worked.length === 0) return;
  const all = [everybody(worked), ...worked];
  const rows = await transaction<Row[]>`select account_id as account, found, evidence from luck
    where service = ${place.service} and account_id = any(${all.map(({ account }) => account)}::int[])`;
  const known = new Map(rows.map((row) => [row.account, row]));
  const weighed: { account: number; work: string; expected: number; found: number; evidence: Evidence }[] = [];
  for (const { account, work, expected, sure, cuts, found, unknown } of all) {
    const before = known.get(account);
    const evidence = weigh(before === undefined ? NO_EVIDENCE : unpacked(before.evidence), {
      expected: sureBlocks(sure, found, cuts),
      found: found + unknown,
    });
    weighed.push({
      account,
      work,
      expected,
      ...(await corrected(transaction, place, account, before, found, evidence)),
    });
  }
  const logs = weighed.map(({ evidence }) => logEvidence(evidence));
  await transaction`insert into luck as l (service, account_id, work, expected, found, evidence, highest, named_at)
    select ${place.service}, k.account, k.work, k.expected, k.found, k.evidence, k.log,
      case when k.log >= ${LOG_LINE}::float8 then now() end from unnest(
      ${weighed.map(({ account }) => account)}::int[], ${weighed.map(({ work }) => work)}::numeric[],
      ${weighed.map(({ expected }) => String(expected))}::text[]::float8[], ${weighed.map(({ found }) => found)}::int[],
      ${byteaTexts(weighed.map(({ evidence }) => packed(evidence).toString('hex')))}::text[]::bytea[], ${logs.map(String)}::text[]::float8[])
        as k(account, work, expected, found, evidence, log)
    on conflict (service, account_id) do update set work = l.work + excluded.work, expected = l.expected + excluded.expected,
      found = l.found + excluded.found, evidence = excluded.evidence, worked_at = now(),
      highest = greatest(l.highest, excluded.highest), named_at = coalesce(l.named_at, excluded.named_at)`;
}

/** Nobody is named before all blocks of its are counted: one may have come after its slice was. */
async function corrected(
  transaction: Transaction,
  { service, first, slice }: Place,
  account: number,
  before: Row | undefined,
  found: number,
  evidence: Evidence,
): Promise<{ found: number; evidence: Evidence }> {
  if (logEvidence(evidence) < LOG_LINE) return { found, evidence };
  const whose = account === EVERYBODY ? transaction`` : transaction`and account_id = ${account}`;
  const [row] = await transaction<{ count: number }[]>`select count(*)::int as count from blocks
    where service = ${service} and slice between ${first} and ${slice} ${whose}`;
  const late = Math.max(0, (row?.count ?? 0) - (before?.found ?? 0) - found);
  return { found: found + late, evidence: weigh(evidence, { expected: 0, found: late }) };
}
