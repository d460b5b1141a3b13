/**
 * Credits (docs/pool.md, books rules): one list per service and slice, over the rewards of all blocks whose anchor lies
 * in the slice, made once every one of them is settled (paid or expired), which the chain guarantees 96 cuts after the
 * slice's last. A pool finds thousands of blocks a day; a row per block and account would be millions.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { divide, feeOf, type SliceRows, type Window, weightsOf, windowOf } from '../../protocol/pplns.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { accountIdsOf, packCredits, workRows } from './packed.ts';

/** One account's part of a list. */
export type Credit = { readonly accountId: number; readonly key: Bytes; readonly value: bigint };

/** Accounts in ascending order of payload, which is the order of lists and of ties; `rankOf` gives an id's place in it. */
type Ranked = {
  readonly accounts: readonly { readonly id: number; readonly payload: Buffer }[];
  readonly rankOf: Int32Array;
};

async function rankAccounts(sql: Sql | Transaction, ids: readonly number[]): Promise<Ranked> {
  const rows = await sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts
    where id = any(${[...ids]}::int[])`;
  if (rows.length !== ids.length) throw new Error(`${ids.length - rows.length} accounts are not in the books`);
  // Nearly all differ in their first bytes, which compare faster as a number.
  const accounts = rows
    .map(({ id, payload }) => ({ id, payload, head: payload.readUIntBE(0, 6) }))
    .sort((a, b) => a.head - b.head || Buffer.compare(a.payload, b.payload));
  const rankOf = new Int32Array(1 + ids.reduce((most, id) => Math.max(most, id), 0));
  for (const [rank, { id }] of accounts.entries()) rankOf[id] = rank;
  return { accounts, rankOf };
}

/** Largest remainders by rank are largest remainders by payload: the order is the same. */
function creditsOf({ accounts }: Ranked, byRank: ReadonlyMap<number, bigint>): Credit[] {
  const credits: Credit[] = [];
  for (const [rank, { id, payload }] of accounts.entries()) {
    const value = byRank.get(rank) ?? 0n;
    if (value > 0n) credits.push({ accountId: id, key: payload, value });
  }
  return credits;
}

async function sliceLeaves(sql: Sql | Transaction, service: number, numbers: readonly number[]) {
  const rows = await sql<{ number: number; total: string; leaves: Buffer }[]>`select number, total, leaves from slices
    where service = ${service} and number = any(${[...numbers]}::int[]) and closed_height is not null`;
  const ranked = await rankAccounts(sql, accountIdsOf(rows.map((row) => row.leaves)));
  const works = rows.map(({ number, total, leaves }): [number, SliceRows<number>] => [
    number,
    { total: BigInt(total), work: rowsByRank(leaves, ranked) },
  ]);
  return { ranked, works: new Map(works) };
}

function* rowsByRank(leaves: Buffer, { rankOf }: Ranked): Generator<readonly [number, bigint]> {
  for (const [accountId, work] of workRows(leaves)) yield [rankOf[accountId] as number, work];
}

/**
 * The window of a slice's blocks, from closed slices alone. A new pool's first blocks, with no work before them, are
 * divided over the first slice from their own on that has any. Undefined while that slice is not closed yet.
 */
export async function windowOfSlice(
  sql: Sql | Transaction,
  service: number,
  slice: number,
): Promise<Window | undefined> {
  const [own] = await sql<{ window_work: string }[]>`select window_work from slices
    where service = ${service} and number <= ${slice} order by number desc limit 1`;
  const before = await sql<{ number: number; total: string }[]>`select number, total from (
      select number, total, sum(total) over (order by number desc) - total as newer from slices
      where service = ${service} and number < ${slice} and closed_height is not null and total > 0
    ) s where newer < ${own?.window_work ?? '0'}::numeric order by number desc`;
  if (own !== undefined && before.length > 0)
    return windowOf(
      BigInt(own.window_work),
      before.map((row) => ({ slice: row.number, total: BigInt(row.total) })),
    );
  const [first] = await sql<{ number: number; total: string; window_work: string }[]>`select number, total, window_work
    from slices where service = ${service} and number >= ${slice} and closed_height is not null and total > 0
    order by number limit 1`;
  if (first === undefined) return undefined;
  return windowOf(BigInt(first.window_work), [{ slice: first.number, total: BigInt(first.total) }]);
}

export type CreditList = {
  readonly service: number;
  readonly slice: number;
  readonly blocks: number;
  readonly reward: bigint;
  readonly fee: bigint;
  readonly feePpm: bigint;
  readonly window: Window;
  /** Ascending by the account's payload; who gets nothing is not in it. */
  readonly credits: readonly Credit[];
};

export const PPLNS = 0;
export const SOLO = 1;

/** What a settled slice's blocks are worth to whom. Pure reading: the audit calls it too. */
export async function computeCredits(
  sql: Sql | Transaction,
  service: number,
  slice: number,
  feePpm: bigint,
): Promise<CreditList | undefined> {
  const blocks = await sql<{ account_id: number; reward: bigint }[]>`select account_id, reward from blocks
    where service = ${service} and slice = ${slice} and state = 'paid' order by block_id`;
  const reward = blocks.reduce((sum, block) => sum + block.reward, 0n);
  const base = { service, slice, blocks: blocks.length, reward, feePpm };
  if (service === SOLO) {
    const ranked = await rankAccounts(sql, [...new Set(blocks.map((block) => block.account_id))]);
    const byRank = new Map<number, bigint>();
    let fee = 0n;
    for (const block of blocks) {
      const rank = ranked.rankOf[block.account_id] as number;
      const own = feeOf(block.reward, feePpm);
      fee += own;
      byRank.set(rank, (byRank.get(rank) ?? 0n) + block.reward - own);
    }
    return { ...base, fee, credits: creditsOf(ranked, byRank), window: { parts: [], counted: 0n } };
  }
  const window = await windowOfSlice(sql, service, slice);
  if (window === undefined) return undefined;
  const { ranked, works } = await sliceLeaves(
    sql,
    service,
    window.parts.map((part) => part.slice),
  );
  const fee = feeOf(reward, feePpm);
  return { ...base, fee, window, credits: creditsOf(ranked, divide(reward - fee, weightsOf(window, works))) };
}

export const windowJson = (window: Window): object[] =>
  window.parts.map((part) => ({ slice: part.slice, total: String(part.total), counted: String(part.counted) }));

async function writeList(transaction: Transaction, list: CreditList, height: number): Promise<void> {
  const { credits } = list;
  const credited = credits.reduce((sum, credit) => sum + credit.value, 0n);
  if (credited + list.fee !== list.reward)
    throw new Error(`credits of slice ${list.slice} do not add up: ${credited} + ${list.fee} is not ${list.reward}`);
  const added = transaction`update accounts a set balance = a.balance + k.amount
    from unnest(${credits.map((credit) => credit.accountId)}::int[],
      ${credits.map((credit) => String(credit.value))}::bigint[]) as k(id, amount)
    where a.id = k.id`.execute();
  added.catch(() => undefined);
  // The database adds while this process hashes.
  await new Promise((resolve) => setImmediate(resolve));
  const { root } = sumTree(credits);
  await added;
  const [row] = await transaction<{ id: number }[]>`insert into credit_lists
      (service, slice, blocks, reward, fee, fee_ppm, credited, window_parts, root, credits, made_height)
    values (${list.service}, ${list.slice}, ${list.blocks}, ${list.reward}, ${list.fee}, ${Number(list.feePpm)},
      ${credited}, ${transaction.json(windowJson(list.window) as never)}, ${Buffer.from(root.hash)},
      ${Buffer.from(packCredits(credits))}, ${height}) returning id`;
  await transaction`update blocks set credit_list = ${(row as { id: number }).id}
    where service = ${list.service} and slice = ${list.slice} and state = 'paid'`;
}

export type CreditOptions = { readonly sliceCuts: number; readonly feePpm: ReadonlyMap<number, bigint> };

/** Makes every list that is due at a finalized height. Each call makes at most one list per service and slice, ever. */
export async function makeCredits(
  transaction: Transaction,
  options: CreditOptions,
  height: number,
): Promise<CreditList[]> {
  const settledBefore = Math.floor((height - REGISTRATION_WINDOW + 1) / options.sliceCuts);
  const due = await transaction<{ service: number; slice: number; open: number }[]>`
    select service, slice, count(*) filter (where state in ('found', 'accepted', 'registered'))::int as open
    from blocks where credit_list is null and slice < ${settledBefore} and state <> 'expired' and state <> 'refused'
    group by service, slice order by slice, service`;
  const made: CreditList[] = [];
  for (const { service, slice, open } of due) {
    // A block still open here waits for its fate; the reward tracker settles it from the chain.
    if (open > 0) continue;
    const list = await computeCredits(transaction, service, slice, options.feePpm.get(service) ?? 0n);
    if (list === undefined) continue;
    await writeList(transaction, list, height);
    made.push(list);
  }
  return made;
}
