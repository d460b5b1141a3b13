/**
 * Notes: the sum of all credits of every account through a list, stored at a fixed interval of lists (books rule 23). To get the sum of an account's credits, read the newest note
 * and the few lists after it. The cost does not grow with the age of the pool.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Bytes, compareBytes, equalBytes } from '../../protocol/bytes.ts';
import { type SumLeaf, type SumTree, sumTreeSteps } from '../../protocol/crypto/sum-tree.ts';
import { attempt } from '../../protocol/errors.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { type PackedRow, packCredits, unpackCredits } from './packed.ts';

/** Lists from one note to the next. A list of 10,000 accounts is read in 3 ms. */
export const LISTS_A_NOTE = 64;
/** Lists read at a time, so that the event loop is not blocked for long. */
const READ_LISTS = 2;

export type CreditTotal = { sum: bigint /** The newest list that has a credit of the account. */; list: number };
export type ListAmounts = {
  readonly id: number;
  readonly reward: bigint;
  readonly fee: bigint;
  readonly credited: bigint;
  readonly credits: Buffer;
};

/** A list's credits, and whether its amounts add up. */
export function creditsOfList({ reward, fee, credited, credits }: ListAmounts): {
  readonly credits: readonly PackedRow[];
  readonly addsUp: boolean;
} {
  const read = attempt(() => unpackCredits(credits));
  const rows = read.ok ? read.value : [];
  const sum = rows.reduce((total, { value }) => total + value, 0n);
  return { credits: rows, addsUp: sum === credited && reward - fee === credited };
}

export function addCredits(totals: Map<number, CreditTotal>, list: number, credits: readonly PackedRow[]): void {
  for (const { accountId, value } of credits) {
    const before = totals.get(accountId);
    if (before === undefined) totals.set(accountId, { sum: value, list });
    else {
      before.sum += value;
      before.list = Math.max(before.list, list);
    }
  }
}

export type NotedTotals = {
  readonly through: number;
  readonly root: Bytes;
  readonly rows: readonly PackedRow[];
  /** Notes that do not add up: they are ignored, and an older one is used. */
  readonly wrong: readonly number[];
};

/** The newest note that adds up; without one, nothing through list 0. */
export async function readTotals(sql: Sql | Transaction): Promise<NotedTotals> {
  const wrong: number[] = [];
  for (;;) {
    const [row] = await sql<{ list_id: number; credited: bigint; root: Buffer; totals: Buffer }[]>`select list_id,
        credited, root, totals from credit_totals
      where list_id < ${wrong.at(-1) ?? 2 ** 31 - 1} order by list_id desc limit 1`;
    if (row === undefined) return { through: 0, root: new Uint8Array(0), rows: [], wrong };
    const read = attempt(() => unpackCredits(row.totals));
    if (read.ok && read.value.reduce((sum, { value }) => sum + value, 0n) === row.credited)
      return { through: row.list_id, root: row.root, rows: read.value, wrong };
    wrong.push(row.list_id);
  }
}

/** A tree built in pieces, so that the event loop is not blocked. Undefined if the leaves do not form a tree. */
export async function treeOf(leaves: readonly SumLeaf[]): Promise<SumTree | undefined> {
  const steps = sumTreeSteps(leaves);
  for (;;) {
    const step = attempt(() => steps.next());
    if (!step.ok) return undefined;
    if (step.value.done) return step.value.value;
    await nextTurn();
  }
}

/** Lists after `after`, oldest first, and those in `again`. */
export async function* listsAfter(
  sql: Sql | Transaction,
  after: number,
  { again = [], most = 2 ** 31 - 1 }: { readonly again?: readonly number[]; readonly most?: number } = {},
): AsyncGenerator<ListAmounts> {
  const cursor = sql<ListAmounts[]>`select id, reward, fee, credited, credits from credit_lists
    where id > ${after} or id = any(${[...again]}::int[]) order by id limit ${most}`.cursor(READ_LISTS);
  for await (const rows of cursor) yield* rows;
}

/**
 * Adds a note when enough lists have come since the last one; called in the transaction that makes them. Books that
 * have no notes yet get them step by step. Nothing is added after a note that does not match its root, or after lists
 * that do not add up: an earlier edit stays detectable until it is corrected.
 */
export async function noteTotals(transaction: Transaction, lists: number): Promise<void> {
  const [newest] = await transaction<
    { through: number; lists: number }[]
  >`select n.through, (select count(*)::int from (
      select from credit_lists where id > n.through limit ${lists}) l) as lists
    from (select coalesce(max(list_id), 0) as through from credit_totals) n`;
  if (newest === undefined || newest.lists < lists) return;
  const { through, root, rows } = await readTotals(transaction);
  if (through !== newest.through) return;
  const totals = new Map<number, CreditTotal>();
  addCredits(totals, 0, rows);
  let last = through;
  // A new account has the payload that its first list commits to: a payload that was edited since is not used.
  const firsts: number[] = [];
  for await (const list of listsAfter(transaction, through, { most: lists })) {
    const { credits, addsUp } = creditsOfList(list);
    if (!addsUp) return;
    if (credits.some(({ accountId }) => !totals.has(accountId))) firsts.push(list.id);
    addCredits(totals, list.id, credits);
    last = list.id;
  }
  const names = await transaction<{ id: number; payload: Buffer }[]>`select account_id as id, payload from account_names
    where account_id = any(${[...totals.keys()]}::int[])`;
  const keys = new Map(names.map(({ id, payload }) => [id, payload]));
  if (keys.size !== totals.size) return;
  const leaf = (accountId: number, value: bigint) => ({ accountId, key: keys.get(accountId) as Buffer, value });
  const isRooted = async (committed: readonly PackedRow[], by: Bytes) => {
    const made = await treeOf(committed.map(({ accountId, value }) => leaf(accountId, value)));
    return made !== undefined && equalBytes(made.root.hash, by);
  };
  if (through > 0 && !(await isRooted(rows, root))) return;
  for (const first of firsts) {
    const [list] = await transaction<{ root: Buffer; credits: Buffer }[]>`select root, credits from credit_lists
      where id = ${first}`;
    if (list === undefined || !(await isRooted(unpackCredits(list.credits), list.root))) return;
  }
  const leaves = [...totals].map(([id, { sum }]) => leaf(id, sum)).sort((a, b) => compareBytes(a.key, b.key));
  const tree = await treeOf(leaves);
  if (tree === undefined) return;
  await transaction`insert into credit_totals (list_id, credited, root, totals)
    values (${last}, ${tree.root.sum}, ${Buffer.from(tree.root.hash)}, ${Buffer.from(packCredits(leaves))})`;
}
