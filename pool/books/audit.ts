/**
 * `svc-pool audit`: recomputes every balance of the whole history and compares it with the books, to the atom. It trusts
 * the slices' leaves and the rewards' amounts, and derives all else: roots, totals, windows, credit lists, balances,
 * amounts in flight and paid. The raw shares that are still kept are summed up against their slices.
 */
import { sumTree } from '../../protocol/sum-tree.ts';
import type { Sql } from '../database/connect.ts';
import { ClosedWork } from './closed-work.ts';
import { computeCredits, creditsOf, windowJson } from './credits.ts';
import { unpackCredits, unpackWork } from './packed.ts';
import { prunedThrough } from './partitions.ts';
import { balanceSheet } from './sheet.ts';

export type Finding = { readonly what: string; readonly books: string; readonly computed: string };
export type AuditReport = {
  readonly slices: number;
  readonly lists: number;
  readonly accounts: number;
  readonly findings: readonly Finding[];
};

export async function audit(
  sql: Sql,
  onProgress: (what: string, done: number) => void = () => undefined,
): Promise<AuditReport> {
  const findings: Finding[] = [];
  const compare = (what: string, books: unknown, computed: unknown) => {
    if (String(books) !== String(computed)) findings.push({ what, books: String(books), computed: String(computed) });
  };
  const slices = await auditSlices(sql, compare, onProgress);
  await auditRawShares(sql, compare, onProgress);
  const { lists, credited } = await auditLists(sql, compare, onProgress);
  const accounts = await auditAccounts(sql, credited, compare);
  const sheet = await balanceSheet(sql);
  compare('the balance sheet', sheet.gap, 0n);
  return { slices, lists, accounts, findings };
}

type Compare = (what: string, books: unknown, computed: unknown) => void;
type Progress = (what: string, done: number) => void;

async function auditSlices(sql: Sql, compare: Compare, onProgress: Progress): Promise<number> {
  let count = 0;
  const cursor = sql<{ service: number; number: number; total: string; root: Buffer; leaves: Buffer }[]>`select service,
    number, total, root, leaves from slices where closed_height is not null order by service, number`.cursor(50);
  for await (const rows of cursor)
    for (const row of rows) {
      const leaves = unpackWork(row.leaves);
      const ids = leaves.map((leaf) => leaf.accountId);
      const accounts = await sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts
        where id = any(${ids}::int[])`;
      const payloads = new Map(accounts.map((account) => [account.id, account.payload]));
      const tree = sumTree(leaves.map((leaf) => ({ key: payloads.get(leaf.accountId) as Buffer, value: leaf.value })));
      const name = `slice ${row.number} of service ${row.service}`;
      compare(`${name}: root`, row.root.toString('hex'), Buffer.from(tree.root.hash).toString('hex'));
      compare(`${name}: total`, row.total, tree.root.sum);
      onProgress('slices', ++count);
    }
  return count;
}

/** One pass over the raw shares, whatever their number. A slice that lost some of them to pruning cannot be checked. */
async function auditRawShares(sql: Sql, compare: Compare, onProgress: Progress): Promise<void> {
  const pruned = await prunedThrough(sql);
  const worked = await sql<{ service: number; number: number }[]>`select service, number from slices
    where closed_height is not null and total > 0`;
  const key = (service: number, slice: number) => `slice ${slice} of service ${service}`;
  const expected = new Set(
    worked.filter((row) => row.number > (pruned.get(row.service) ?? -1)).map((row) => key(row.service, row.number)),
  );
  let checked = 0;
  const check = async ({ service, slice, work }: { service: number; slice: number; work: Map<number, string> }) => {
    const name = key(service, slice);
    if (!expected.delete(name)) return;
    const [row] = await sql<{ leaves: Buffer }[]>`select leaves from slices
      where service = ${service} and number = ${slice}`;
    const leaves = unpackWork((row as { leaves: Buffer }).leaves);
    compare(`${name}: accounts with raw shares`, leaves.length, work.size);
    for (const leaf of leaves)
      compare(`${name}: raw shares of account ${leaf.accountId}`, leaf.value, work.get(leaf.accountId));
    onProgress('raw shares', ++checked);
  };
  const cursor = sql<{ service: number; slice: number; account_id: number; work: string }[]>`select service, slice,
    account_id, sum(work)::text as work from shares group by 1, 2, 3 order by 1, 2`.cursor(10_000);
  let current: Parameters<typeof check>[0] | undefined;
  for await (const rows of cursor)
    for (const { service, slice, account_id, work } of rows) {
      if (current?.service !== service || current.slice !== slice) {
        if (current !== undefined) await check(current);
        current = { service, slice, work: new Map() };
      }
      current.work.set(account_id, work);
    }
  if (current !== undefined) await check(current);
  for (const name of expected) compare(`${name}: raw shares`, 'there', 'gone');
}

async function auditLists(sql: Sql, compare: Compare, onProgress: Progress) {
  const credited = new Map<number, bigint>();
  const closed = new ClosedWork();
  const rows = await sql<
    {
      service: number;
      slice: number;
      fee_ppm: number;
      fee: bigint;
      reward: bigint;
      root: Buffer;
      credits: Buffer;
      window_parts: object[];
    }[]
  >`select service, slice, fee_ppm, fee, reward, root, credits, window_parts from credit_lists order by id`;
  for (const [i, row] of rows.entries()) {
    const name = `credits of slice ${row.slice}, service ${row.service}`;
    const list = await computeCredits(sql, closed, row.service, row.slice);
    const booked = unpackCredits(row.credits);
    for (const { accountId, value } of booked) credited.set(accountId, (credited.get(accountId) ?? 0n) + value);
    if (list === undefined) {
      compare(name, 'made', 'not due');
      continue;
    }
    compare(`${name}: reward`, row.reward, list.reward);
    compare(`${name}: fee rate`, row.fee_ppm, list.feePpm);
    compare(`${name}: fee`, row.fee, list.fee);
    compare(
      `${name}: window`,
      JSON.stringify(row.window_parts.map(canonical)),
      JSON.stringify(windowJson(list.window).map(canonical)),
    );
    const credits = creditsOf(closed.accounts, list.shares);
    compare(`${name}: root`, row.root.toString('hex'), Buffer.from(sumTree(credits).root.hash).toString('hex'));
    const expected = new Map(credits.map((credit) => [credit.accountId, credit.value]));
    compare(`${name}: accounts`, booked.length, expected.size);
    for (const { accountId, value } of booked) compare(`${name}: account ${accountId}`, value, expected.get(accountId));
    onProgress('credit lists', i + 1);
  }
  return { lists: rows.length, credited };
}

const canonical = (part: object) => Object.entries(part).sort();

async function auditAccounts(sql: Sql, credited: ReadonlyMap<number, bigint>, compare: Compare): Promise<number> {
  const rows = await sql<
    { id: number; balance: bigint; in_flight: bigint; paid: bigint; flying: string; settled: string }[]
  >`select a.id, a.balance, a.in_flight, a.paid,
      coalesce(sum(i.amount) filter (where p.state in ('reserved', 'submitting', 'submitted')), 0)::text as flying,
      coalesce(sum(i.amount) filter (where p.state = 'finalized'), 0)::text as settled
    from accounts a left join payout_items i on i.account_id = a.id left join payouts p on p.id = i.payout_id
    group by a.id order by a.id`;
  for (const row of rows) {
    compare(`account ${row.id}: in flight`, row.in_flight, row.flying);
    compare(`account ${row.id}: paid`, row.paid, row.settled);
    compare(
      `account ${row.id}: balance`,
      row.balance,
      (credited.get(row.id) ?? 0n) - BigInt(row.flying) - BigInt(row.settled),
    );
  }
  return rows.length;
}
