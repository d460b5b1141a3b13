/**
 * Credits (docs/pool.md, books rules): one list per service and slice, over the rewards of all blocks whose anchor lies
 * in the slice, made once every one of them is settled (paid or expired), which the chain guarantees 96 cuts after the
 * slice's last. A pool finds thousands of blocks a day; a row per block and account would be millions.
 */

import { divideRanked, feeOf, rankedWeights, type Window, windowOf } from '../../protocol/books/pplns.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { integerArray, type Sql, type Transaction } from '../database/connect.ts';
import { takeTurn } from '../database/row-turns.ts';
import type { AccountOrder } from './account-order.ts';
import type { ClosedWork } from './closed-work.ts';
import { LISTS_A_NOTE, noteTotals } from './credit-totals.ts';
import { packCredits } from './packed.ts';
import { windowFeeStart } from './terms-in-force.ts';

/** One account's part of a list. */
export type Credit = { readonly accountId: number; readonly key: Bytes; readonly value: bigint };

/** Ascending by the account's payload; accounts that get nothing are left out. */
export function creditsOf(accounts: AccountOrder, shares: readonly bigint[]): Credit[] {
  const credits: Credit[] = [];
  for (const [rank, value] of shares.entries())
    if (value > 0n) credits.push({ accountId: accounts.idAt(rank), key: accounts.payloadAt(rank), value });
  return credits;
}

/**
 * The window of a slice's blocks, from closed slices alone. A new pool's first blocks, with no work before them, are
 * divided over the first slice with work, starting from their own. Undefined while that slice is not closed yet.
 */
export async function windowOfSlice(
  sql: Sql | Transaction,
  service: number,
  slice: number,
): Promise<{ readonly window: Window; readonly windowWork: bigint } | undefined> {
  const [own] = await sql<{ window_work: string }[]>`select window_work from slices
    where service = ${service} and number = ${slice}`;
  const before = await sql<{ number: number; total: string }[]>`select number, total from (
      select number, total, sum(total) over (order by number desc) - total as newer from slices
      where service = ${service} and number < ${slice} and closed_height is not null and total > 0
    ) s where newer < ${own?.window_work ?? '0'}::numeric order by number desc`;
  if (own !== undefined && before.length > 0) {
    const windowWork = BigInt(own.window_work);
    const totals = before.map((row) => ({ slice: row.number, total: BigInt(row.total) }));
    return { window: windowOf(windowWork, totals), windowWork };
  }
  const [first] = await sql<{ number: number; total: string; window_work: string }[]>`select number, total, window_work
    from slices where service = ${service} and number >= ${slice} and closed_height is not null and total > 0
    order by number limit 1`;
  if (first === undefined) return undefined;
  const windowWork = BigInt(first.window_work);
  return { window: windowOf(windowWork, [{ slice: first.number, total: BigInt(first.total) }]), windowWork };
}

/** The fee in force when the slice opened; for a block before the pool's first slice, that of the first. */
async function feePpmOf(sql: Sql | Transaction, service: number, slice: number): Promise<bigint> {
  const [row] = await sql<{ fee_ppm: number }[]>`select fee_ppm from slices where service = ${service}
    order by number > ${slice}, abs(number - ${slice}) limit 1`;
  return BigInt(row?.fee_ppm ?? 0);
}

/** The lowest fee of a list's slice and its window, so that work is paid under the fee it was done under. */
async function windowFeeOf(
  sql: Sql | Transaction,
  { service, slice, own }: { readonly service: number; readonly slice: number; readonly own: bigint },
  { parts }: Window,
): Promise<bigint> {
  if (slice < ((await windowFeeStart(sql)) ?? Number.POSITIVE_INFINITY)) return own;
  const [row] = await sql<{ least: number | null }[]>`select min(fee_ppm) as least from slices
    where service = ${service} and number = any(${parts.map((part) => part.slice)}::int[])`;
  const least = BigInt(row?.least ?? own);
  return least < own ? least : own;
}

export type CreditList = {
  readonly service: number;
  readonly slice: number;
  readonly blocks: number;
  readonly reward: bigint;
  readonly fee: bigint;
  readonly feePpm: bigint;
  readonly window: Window;
  readonly windowWork: bigint;
  /** Indexed by rank among the accounts of the closed work. */
  readonly shares: readonly bigint[];
};

export const PPLNS = 0;
export const SOLO = 1;

/** Computes the credits of a settled slice's blocks. Read-only: the audit calls it too. */
export async function computeCredits(
  sql: Sql | Transaction,
  closed: ClosedWork,
  service: number,
  slice: number,
): Promise<CreditList | undefined> {
  const own = await feePpmOf(sql, service, slice);
  const blocks = await sql<{ account_id: number; reward: bigint }[]>`select account_id, reward from blocks
    where service = ${service} and slice = ${slice} and state = 'paid' order by block_id`;
  const reward = blocks.reduce((sum, block) => sum + block.reward, 0n);
  const base = { service, slice, blocks: blocks.length, reward };
  const { accounts } = closed;
  if (service === SOLO) {
    const finders = [...new Set(blocks.map((block) => block.account_id))];
    await accounts.know(sql, finders);
    const shares = new Array<bigint>(accounts.size).fill(0n);
    let fee = 0n;
    for (const block of blocks) {
      const rank = accounts.rankOf(block.account_id);
      const taken = feeOf(block.reward, own);
      fee += taken;
      shares[rank] = (shares[rank] as bigint) + block.reward - taken;
    }
    return { ...base, feePpm: own, fee, shares, window: { parts: [], counted: 0n }, windowWork: 1n };
  }
  const found = await windowOfSlice(sql, service, slice);
  if (found === undefined) return undefined;
  const { window, windowWork } = found;
  const slices = await closed.slicesOf(sql, service, window);
  const feePpm = await windowFeeOf(sql, { service, slice, own }, window);
  const fee = feeOf(reward, feePpm);
  const shares = divideRanked(reward - fee, rankedWeights(window, slices, accounts.size));
  return { ...base, feePpm, fee, window, windowWork, shares };
}

export const windowJson = (window: Window): object[] =>
  window.parts.map((part) => ({ slice: part.slice, total: String(part.total), counted: String(part.counted) }));

async function writeList(
  transaction: Transaction,
  accounts: AccountOrder,
  list: CreditList,
  height: number,
): Promise<void> {
  const { shares } = list;
  const credited = shares.reduce((sum, share) => sum + share, 0n);
  if (credited + list.fee !== list.reward)
    throw new Error(`credits of slice ${list.slice} do not add up: ${credited} + ${list.fee} is not ${list.reward}`);
  // Updates in table order are faster.
  const paid = accounts.ids().filter((id) => (shares[accounts.rankOf(id)] as bigint) > 0n);
  await takeTurn(transaction, 'accounts');
  const added = transaction`update accounts a set balance = a.balance + k.amount
    from unnest(${integerArray(paid)}::text::int[],
      ${integerArray(paid.map((id) => shares[accounts.rankOf(id)] as bigint))}::text::bigint[]) as k(id, amount)
    where a.id = k.id`.execute();
  added.catch(() => undefined);
  // The database adds while this process packs and hashes.
  await new Promise((resolve) => setImmediate(resolve));
  const credits = creditsOf(accounts, shares);
  const packed = Buffer.from(packCredits(credits));
  const { root } = sumTree(credits);
  const [[row], changed] = await Promise.all([
    transaction<{ id: number }[]>`insert into credit_lists
        (service, slice, blocks, reward, fee, fee_ppm, credited, window_parts, root, credits, made_height, window_work)
      values (${list.service}, ${list.slice}, ${list.blocks}, ${list.reward}, ${list.fee}, ${Number(list.feePpm)},
        ${credited}, ${transaction.json(windowJson(list.window) as never)}, ${Buffer.from(root.hash)},
        ${packed}, ${height}, ${String(list.windowWork)}::numeric) returning id`,
    added,
  ]);
  if (changed.count !== paid.length)
    throw new Error(`credits of slice ${list.slice}: ${paid.length} accounts are due, ${changed.count} have a balance`);
  await transaction`update blocks set credit_list = ${(row as { id: number }).id}
    where service = ${list.service} and slice = ${list.slice} and state = 'paid'`;
}

export type CreditOptions = {
  readonly sliceCuts: number;
  /** Lists from one note of all credits to the next. */
  readonly listsANote?: number;
};

/** Makes every list that is due at a finalized height. Only one list is ever made per service and slice. */
export async function makeCredits(
  transaction: Transaction,
  closed: ClosedWork,
  options: CreditOptions,
  height: number,
): Promise<CreditList[]> {
  const settledBefore = Math.floor((height - REGISTRATION_WINDOW + 1) / options.sliceCuts);
  const due = await transaction<{ service: number; slice: number; open: number }[]>`
    select service, slice, count(*) filter (where state in ('found', 'accepted', 'registered')
        or (state = 'held' and settled_height + ${REGISTRATION_WINDOW} > ${height}))::int as open
    from blocks where credit_list is null and slice < ${settledBefore} and state <> 'expired' and state <> 'refused'
    group by service, slice having count(*) filter (where state = 'paid') > 0 order by slice, service`;
  const made: CreditList[] = [];
  for (const { service, slice, open } of due) {
    // The list waits while one of its blocks is open. For a held block it waits as long as a window; then that block
    // counts later (rule 7).
    if (open > 0) continue;
    const list = await computeCredits(transaction, closed, service, slice);
    if (list === undefined) continue;
    await writeList(transaction, closed.accounts, list, height);
    made.push(list);
  }
  if (made.length > 0) await noteTotals(transaction, options.listsANote ?? LISTS_A_NOTE);
  return made;
}
