/**
 * Credits (docs/pool.md, books rules): one list per service and slice, over the rewards of all blocks whose anchor lies
 * in the slice, made once every one of them is settled (paid or expired), which the chain guarantees 96 cuts after the
 * slice's last. A pool finds thousands of blocks a day; a row per block and account would be millions.
 */
import { compareBytes } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { divide, feeOf, type SliceWork, type Window, weightsOf, windowOf } from '../../protocol/pplns.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import { byteaTexts, type Sql, type Transaction } from '../database/connect.ts';
import { packCredits, unpackWork } from './packed.ts';

/** Account ids as map keys: division breaks ties by account payload, so keys are payloads in hex. */
export type Accounts = {
  readonly payloadOf: (accountId: number) => string;
  readonly idOf: (payload: string) => number;
};

export async function accountsOf(sql: Sql | Transaction, ids: Iterable<number>): Promise<Accounts> {
  const rows = await sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts
    where id = any(${[...new Set(ids)]}::int[])`;
  const payloads = new Map(rows.map((row) => [row.id, row.payload.toString('hex')]));
  const byPayload = new Map([...payloads].map(([id, payload]) => [payload, id]));
  const found = <K, V>(map: Map<K, V>, key: K): V => {
    const value = map.get(key);
    if (value === undefined) throw new Error(`account ${String(key)} is not in the books`);
    return value;
  };
  return { payloadOf: (id) => found(payloads, id), idOf: (payload) => found(byPayload, payload) };
}

type SliceRow = { number: number; total: string; leaves: Buffer };

async function sliceWorks(sql: Sql | Transaction, service: number, numbers: readonly number[]) {
  const rows = await sql<SliceRow[]>`select number, total, leaves from slices
    where service = ${service} and number = any(${[...numbers]}::int[]) and closed_height is not null`;
  const packed = rows.map((row) => ({ row, work: unpackWork(row.leaves) }));
  const accounts = await accountsOf(
    sql,
    packed.flatMap(({ work }) => work.map((leaf) => leaf.accountId)),
  );
  return new Map(
    packed.map(({ row, work }): [number, SliceWork] => [
      row.number,
      {
        slice: row.number,
        total: BigInt(row.total),
        work: new Map(work.map((leaf) => [accounts.payloadOf(leaf.accountId), leaf.value])),
      },
    ]),
  );
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
  /** By account payload in hex. */
  readonly credits: ReadonlyMap<string, bigint>;
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
    const accounts = await accountsOf(
      sql,
      blocks.map((block) => block.account_id),
    );
    const credits = new Map<string, bigint>();
    let fee = 0n;
    for (const block of blocks) {
      const payload = accounts.payloadOf(block.account_id);
      const own = feeOf(block.reward, feePpm);
      fee += own;
      credits.set(payload, (credits.get(payload) ?? 0n) + block.reward - own);
    }
    return { ...base, fee, credits, window: { parts: [], counted: 0n } };
  }
  const window = await windowOfSlice(sql, service, slice);
  if (window === undefined) return undefined;
  const works = await sliceWorks(
    sql,
    service,
    window.parts.map((part) => part.slice),
  );
  const fee = feeOf(reward, feePpm);
  return { ...base, fee, window, credits: divide(reward - fee, weightsOf(window, works)) };
}

export const creditLeaves = (credits: ReadonlyMap<string, bigint>) =>
  [...credits]
    .filter(([, value]) => value > 0n)
    .map(([payload, value]) => ({ payload, key: new Uint8Array(Buffer.from(payload, 'hex')), value }))
    .sort((a, b) => compareBytes(a.key, b.key));

export const windowJson = (window: Window): object[] =>
  window.parts.map((part) => ({ slice: part.slice, total: String(part.total), counted: String(part.counted) }));

async function writeList(transaction: Transaction, list: CreditList, height: number): Promise<void> {
  const leaves = creditLeaves(list.credits);
  const credited = leaves.reduce((sum, leaf) => sum + leaf.value, 0n);
  if (credited + list.fee !== list.reward)
    throw new Error(`credits of slice ${list.slice} do not add up: ${credited} + ${list.fee} is not ${list.reward}`);
  const { root } = sumTree(leaves);
  const accounts = await ensureIds(transaction, leaves);
  const packed = packCredits(leaves.map((leaf, i) => ({ accountId: accounts[i] as number, value: leaf.value })));
  const [row] = await transaction<{ id: number }[]>`insert into credit_lists
      (service, slice, blocks, reward, fee, fee_ppm, credited, window_parts, root, credits, made_height)
    values (${list.service}, ${list.slice}, ${list.blocks}, ${list.reward}, ${list.fee}, ${Number(list.feePpm)},
      ${credited}, ${transaction.json(windowJson(list.window) as never)}, ${Buffer.from(root.hash)},
      ${Buffer.from(packed)}, ${height}) returning id`;
  await transaction`update blocks set credit_list = ${(row as { id: number }).id}
    where service = ${list.service} and slice = ${list.slice} and state = 'paid'`;
  await transaction`update accounts a set balance = a.balance + k.amount
    from unnest(${accounts}::int[], ${leaves.map((leaf) => String(leaf.value))}::bigint[]) as k(id, amount)
    where a.id = k.id`;
}

async function ensureIds(transaction: Transaction, leaves: readonly { payload: string }[]): Promise<number[]> {
  const rows = await transaction<{ id: number; payload: Buffer }[]>`select id, payload from accounts
    where payload = any(${byteaTexts(leaves.map((leaf) => leaf.payload))}::text[]::bytea[])`;
  const ids = new Map(rows.map((row) => [row.payload.toString('hex'), row.id]));
  return leaves.map((leaf) => ids.get(leaf.payload) as number);
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
