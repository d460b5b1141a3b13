/** Checks credit lists (books rules 4 to 8): each is recomputed from slices and blocks and compared to the atom. */
import { toHex } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import { attempt } from '../../protocol/errors.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { ClosedWork } from '../books/closed-work.ts';
import { computeCredits, creditsOf, windowJson } from '../books/credits.ts';
import { unpackCredits } from '../books/packed.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { reachedBy } from './commitments.ts';
import type { Findings } from './findings.ts';
import type { Progress } from './slices.ts';
import { batches } from './snapshot.ts';

/** Lists that are in memory at once, each with up to a megabyte of credits. */
const BATCH = 64;

type ListRow = {
  id: number;
  service: number;
  slice: number;
  blocks: number;
  fee_ppm: number;
  fee: bigint;
  reward: bigint;
  credited: bigint;
  window_work: string;
  root: Buffer;
  credits: Buffer;
  window_parts: object[];
};

const canonical = (parts: readonly object[]): string =>
  JSON.stringify(parts.map((part) => Object.entries(part).sort()));

/** Recomputed from the slices; `closed` caches the slices for the next list. */
async function auditList(sql: Sql, closed: ClosedWork, row: ListRow, name: string, findings: Findings): Promise<void> {
  const list = await computeCredits(sql, closed, row.service, row.slice);
  if (list === undefined) {
    findings.add(name, 'made', 'not due');
    return;
  }
  findings.compare(`${name}: blocks`, row.blocks, list.blocks);
  findings.compare(`${name}: reward`, row.reward, list.reward);
  findings.compare(`${name}: fee rate`, row.fee_ppm, list.feePpm);
  findings.compare(`${name}: fee`, row.fee, list.fee);
  findings.compare(`${name}: credited`, row.credited, list.reward - list.fee);
  findings.compare(`${name}: W`, row.window_work, list.windowWork);
  findings.compare(`${name}: window`, canonical(row.window_parts), canonical(windowJson(list.window)));
  const credits = creditsOf(closed.accounts, list.shares);
  findings.compare(`${name}: root`, row.root.toString('hex'), toHex(sumTree(credits).root.hash));
  const expected = new Map(credits.map((credit) => [credit.accountId, credit.value]));
  const booked = unpackCredits(row.credits);
  findings.compare(`${name}: accounts`, booked.length, expected.size);
  for (const { accountId, value } of booked)
    findings.compare(`${name}: account ${accountId}`, value, expected.get(accountId));
  const [joined] = await sql<{ count: number }[]>`select count(*)::int as count from blocks
    where credit_list = ${row.id} and service = ${row.service} and slice = ${row.slice} and state = 'paid'`;
  findings.compare(`${name}: blocks that name it`, joined?.count, list.blocks);
}

/** The pool's totals of all credits up to a list, if it stored them. */
async function auditTotals(
  sql: Sql,
  list: number,
  credited: ReadonlyMap<number, bigint>,
  findings: Findings,
): Promise<void> {
  const [row] = await sql<{ credited: bigint; totals: Buffer }[]>`select credited, totals from credit_totals
    where list_id = ${list}`;
  if (row === undefined) return;
  const name = `totals through credit list ${list}`;
  const noted = attempt(() => new Map(unpackCredits(row.totals).map(({ accountId, value }) => [accountId, value])));
  if (!noted.ok) return findings.add(name, 'cannot be read', 'the credits of all accounts');
  findings.compare(
    `${name}: credited`,
    row.credited,
    [...credited.values()].reduce((sum, value) => sum + value, 0n),
  );
  findings.compare(`${name}: accounts`, noted.value.size, credited.size);
  for (const [account, sum] of credited) findings.compare(`${name}: account ${account}`, noted.value.get(account), sum);
}

/** `credited`: by account; undefined where the lists could not be read. */
export type AuditedLists = { readonly lists: number; readonly credited: ReadonlyMap<number, bigint> | undefined };

export async function auditLists(sql: Sql, findings: Findings, onProgress: Progress): Promise<AuditedLists> {
  const credited = new Map<number, bigint>();
  let closed = new ClosedWork();
  let count = 0;
  const [all] = await sql<{ count: number }[]>`select count(*)::int as count from credit_lists`;
  const query = sql<ListRow[]>`select id, service, slice, blocks, fee_ppm, fee, reward, credited, window_work::text,
    root, credits, window_parts from credit_lists order by id`;
  for await (const rows of batches(sql, query, BATCH))
    for (const row of rows) {
      const name = `credits of slice ${row.slice} of ${SERVICES[row.service] ?? row.service}`;
      for (const { accountId, value } of unpackCredits(row.credits))
        credited.set(accountId, (credited.get(accountId) ?? 0n) + value);
      await auditTotals(sql, row.id, credited, findings);
      const isRead = await findings.section(
        name,
        async () => {
          await auditList(sql, closed, row, name, findings);
          return true;
        },
        false,
      );
      if (!isRead) closed = new ClosedWork();
      onProgress('credit_lists', ++count, all?.count);
    }
  await auditDue(sql, findings);
  await auditWorkers(sql, findings);
  return { lists: count, credited };
}

/** Every paid block is credited once its slice is settled; a block without a list was left out. */
async function auditDue(sql: Sql, findings: Findings): Promise<void> {
  const reached = await reachedBy(sql);
  // An invalid height is reported by another check.
  const height = Number.isSafeInteger(reached) ? reached : 0;
  const left = await sql<{ block_id: Buffer; service: number; slice: number; credited: number | null }[]>`select
      b.block_id, b.service, b.slice, c.id as credited
    from blocks b join slices s on s.service = b.service and s.number = b.slice
    left join credit_lists c on c.service = b.service and c.slice = b.slice
    where b.state = 'paid' and b.credit_list is null and (c.id is not null
      or (b.slice + 1)::bigint * s.slice_cuts + ${REGISTRATION_WINDOW} + s.slice_cuts < ${height}::bigint)
      and exists (select from slices w where w.service = b.service and w.closed_height is not null and w.total > 0)`;
  for (const row of left)
    findings.add(
      `block ${row.block_id.toString('hex')} of slice ${row.slice} of ${SERVICES[row.service]}`,
      'not credited',
      'credited',
    );
}

/** The worker that found a block is one of its finder's, in the block's service. */
async function auditWorkers(sql: Sql, findings: Findings): Promise<void> {
  const rows = await sql<{ block_id: Buffer; account_id: number; worker_id: number }[]>`select b.block_id, b.account_id,
      b.worker_id from blocks b left join workers w on w.id = b.worker_id
    where w.account_id is distinct from b.account_id or w.service is distinct from b.service order by b.block_id`;
  for (const { block_id: id, account_id: account, worker_id: worker } of rows)
    findings.add(`block ${id.toString('hex')}: finder`, `account ${account}`, `worker ${worker} is not one of it`);
}
