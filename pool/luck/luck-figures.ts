/** What the pool shows of luck: to the operator the accounts whose evidence reached the line, to a miner its own. */
import type { Sql } from '../database/connect.ts';
import { SERVICES, type Service } from '../journal/journal-record.ts';
import { EVERYBODY } from './luck-round.ts';

/** Lines of the operator's list. */
const MAX_SUSPECTS = 100;
/** Only where a block is divided among all does somebody who keeps it back take from others. */
const DIVIDED = SERVICES.indexOf('pplns');

export type Suspect = {
  /** Null: all accounts together. */
  readonly address: string | null;
  readonly expected: number;
  readonly found: number;
  /** The highest evidence so far. */
  readonly evidence: number;
  /** About so many hashes were done for blocks that never came. */
  readonly withheldWork: bigint;
  readonly namedMillis: number;
  readonly workedMillis: number;
};

/** The newest first. */
export async function suspects(sql: Sql): Promise<Suspect[]> {
  const rows = await sql<
    {
      address: string | null;
      work: string;
      expected: number;
      found: number;
      highest: number;
      named_at: Date;
      worked_at: Date;
    }[]
  >`select a.address, l.work::text as work, l.expected, l.found, l.highest, l.named_at, l.worked_at
    from luck l left join accounts a on a.id = l.account_id
    where l.named_at is not null and l.service = ${DIVIDED} order by l.named_at desc, l.account_id limit ${MAX_SUSPECTS}`;
  return rows.map(({ address, work, expected, found, highest, named_at, worked_at }) => ({
    address,
    expected,
    found,
    // Beyond what a float holds it is the largest that JSON can write.
    evidence: Math.min(Number.MAX_VALUE, Math.exp(highest)),
    withheldWork: (BigInt(work) * BigInt(Math.round(Math.max(0, 1 - found / expected) * 1e6))) / 1_000_000n,
    namedMillis: named_at.getTime(),
    workedMillis: worked_at.getTime(),
  }));
}

/** Accounts above the line that worked in the last day: those that were sent away are no longer an alarm. */
export async function countSuspects(sql: Sql): Promise<number> {
  const [row] = await sql<{ count: number }[]>`select count(*)::int as count from luck where named_at is not null
    and service = ${DIVIDED} and worked_at > now() - interval '1 day'`;
  return row?.count ?? 0;
}

export type OwnLuck = {
  readonly service: Service;
  readonly expected: number;
  readonly found: number;
  readonly probability: number;
};

/** Logarithm of n!, by Stirling's series where it is exact to 12 digits. */
function logFactorial(n: number): number {
  if (n < 16) {
    let product = 1;
    for (let i = 2; i <= n; i++) product *= i;
    return Math.log(product);
  }
  return n * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI * n) + 1 / (12 * n) - 1 / (360 * n ** 3);
}

/** Terms below this part of the sum are left out. */
const NEGLIGIBLE = 1e-16;

/**
 * How likely an account's luck is, by tails of the Poisson distribution (for display, so floats): the chance that luck alone is as far from what is expected as this, on the same side, doubled: two-sided, at most 1. Terms are added away from the
 * mean, where each is smaller than the one before.
 */
export function chanceOf(expected: number, found: number): number {
  if (expected <= 0) return 1;
  const isFew = found < expected;
  const first = Math.exp(found * Math.log(expected) - expected - logFactorial(found));
  let tail = first;
  for (let term = first, k = found; term > tail * NEGLIGIBLE; tail += term) {
    term *= isFew ? k / expected : expected / (k + 1);
    k += isFew ? -1 : 1;
  }
  return Math.min(1, 2 * tail);
}

/** Of each service that the account worked for. Its blocks are counted anew: one may have come late. */
export async function luckOf(sql: Sql, accountId: number): Promise<OwnLuck[]> {
  if (accountId === EVERYBODY) return [];
  const rows = await sql<{ service: number; expected: number; found: number }[]>`select l.service, l.expected,
      (select count(*)::int from blocks b where b.account_id = l.account_id and b.service = l.service
        and b.slice between s.first and s.through) as found
    from luck l join luck_slices s using (service) where l.account_id = ${accountId} order by l.service`;
  return rows.map(({ service, expected, found }) => ({
    service: SERVICES[service] as Service,
    expected,
    found,
    probability: chanceOf(expected, found),
  }));
}
