/**
 * Checks raw shares against slices: each closed slice's leaves, and the open slice's work, are sums of raw shares. And
 * against each other: a header and nonce count once.
 */
import { unpackWork } from '../books/packed.ts';
import { prunedThrough } from '../books/partitions.ts';
import type { Sql } from '../database/connect.ts';
import { type Findings, REMEDIES } from './findings.ts';
import { type Progress, sliceName } from './slices.ts';
import { batches } from './snapshot.ts';

type SliceSum = { readonly service: number; readonly slice: number; readonly work: Map<number, string> };

/** The work of a slice in the books, by account. */
async function bookedWork(sql: Sql, service: number, slice: number): Promise<Map<number, string>> {
  const [row] = await sql<{ leaves: Buffer | null }[]>`select leaves from slices
    where service = ${service} and number = ${slice}`;
  if (row === undefined) {
    const later = await sql<{ account_id: number; work: string }[]>`select account_id, work::text from later_work
      where service = ${service} and slice = ${slice}`;
    return new Map(later.map((each) => [each.account_id, each.work]));
  }
  if (row.leaves !== null) return new Map(unpackWork(row.leaves).map((leaf) => [leaf.accountId, String(leaf.value)]));
  const open = await sql<{ account_id: number; work: string }[]>`select account_id, work::text from open_work
    where service = ${service}`;
  return new Map(open.map((each) => [each.account_id, each.work]));
}

/** One pass over the raw shares. A slice that lost some of them to pruning cannot be checked. */
export async function auditRawShares(sql: Sql, findings: Findings, onProgress: Progress): Promise<void> {
  const pruned = await prunedThrough(sql);
  const worked = await sql<{ service: number; number: number }[]>`select service, number from slices s
    where (closed_height is not null and octet_length(leaves) > 0)
      or (closed_height is null and exists (select from open_work o where o.service = s.service))
    union select service, slice from later_work`;
  const expected = new Set(
    worked
      .filter((row) => row.number > (pruned.get(row.service) ?? -1))
      .map((row) => sliceName(row.service, row.number)),
  );
  let checked = 0;
  const all = expected.size;
  const check = async ({ service, slice, work }: SliceSum) => {
    const name = sliceName(service, slice);
    if (slice <= (pruned.get(service) ?? -1)) return;
    if (!expected.delete(name)) findings.add(`${name}: raw shares`, 'there', 'the slice has no work', REMEDIES.shares);
    const booked = await bookedWork(sql, service, slice);
    findings.compare(`${name}: accounts with raw shares`, booked.size, work.size, REMEDIES.shares);
    for (const [account, sum] of booked)
      findings.compare(`${name}: raw shares of account ${account}`, sum, work.get(account), REMEDIES.shares);
    onProgress('raw_shares', ++checked, Math.max(all, checked));
  };
  const query = sql<{ service: number; slice: number; account_id: number; work: string }[]>`select service, slice,
    account_id, sum(work)::text as work from shares group by 1, 2, 3 order by 1, 2`;
  let current: SliceSum | undefined;
  for await (const rows of batches(sql, query, 10_000))
    for (const { service, slice, account_id, work } of rows) {
      if (current?.service !== service || current.slice !== slice) {
        if (current !== undefined) await check(current);
        current = { service, slice, work: new Map() };
      }
      current.work.set(account_id, work);
    }
  if (current !== undefined) await check(current);
  for (const name of expected) findings.add(`${name}: raw shares`, 'gone', 'there', REMEDIES.shares);
}

/** Of each header and nonce there is one raw share (books rule 14). */
export async function auditIdentities(sql: Sql, findings: Findings): Promise<void> {
  const query = sql<{ identity: Buffer; count: number }[]>`select identity, count(*)::int as count from shares
    where identity is not null group by identity having count(*) > 1 order by identity`;
  for await (const rows of batches(sql, query, 1_000))
    for (const { identity, count } of rows)
      findings.add(`raw shares of header and nonce ${identity.toString('hex')}`, count, 1, REMEDIES.shares);
}
