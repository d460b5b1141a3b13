/**
 * The shares of a journal that counted before (docs/protocol/books.md, rule 14), from another journal or from an earlier
 * place in this one. No receipt may count them once more (rule 17), and those of other miners beside them must have theirs:
 * so each is on record, as runs without a share that counted. A copy of a journal is one run. Who has a share in two
 * journals makes a run for it; of a journal with too many the oldest become one inexact run, and slices with a share in
 * that have no receipts. Those are hours old, unless so many come in one slice.
 */
import type { Sql, Transaction } from '../database/connect.ts';

/** Of a journal. Each costs its miner a share. */
export const MOST_RUNS = 1_024;

/** Entries from `first` through `through`, of which every share counted before; of an inexact run some did not. */
export type DoubledRun = { readonly first: number; readonly through: number; readonly isExact: boolean };

/** Runs of one journal's entries, in their order, between the shares that counted. */
export function doubledRuns(
  entries: readonly { readonly sequence: number; readonly counts: boolean | null }[],
): DoubledRun[] {
  const runs: DoubledRun[] = [];
  let [first, through, isDoubled] = [-1, -1, false];
  const end = () => {
    if (isDoubled) runs.push({ first, through, isExact: true });
    [first, through, isDoubled] = [-1, -1, false];
  };
  for (const { sequence, counts } of entries) {
    if (counts === true) {
      end();
      continue;
    }
    if (first === -1) first = sequence;
    through = sequence;
    isDoubled ||= counts === false;
  }
  end();
  return runs;
}

/** Runs of entries behind all that are on record of the journal. */
export async function noteDoubled(
  transaction: Transaction,
  bootId: string,
  [next, ...rest]: readonly DoubledRun[],
): Promise<void> {
  if (next === undefined) return;
  const boot = Buffer.from(bootId, 'hex');
  const continued = await transaction`update doubled_shares set through = ${next.through}
    where boot_id = ${boot} and through = ${next.first - 1} and is_exact returning 1`;
  const runs = continued.length > 0 ? rest : [next, ...rest];
  await transaction`insert into doubled_shares (boot_id, first, through)
    select ${boot}::bytea, * from unnest(${runs.map(({ first }) => first)}::bigint[],
      ${runs.map(({ through }) => through)}::bigint[])`;
  const old = await transaction<{ first: bigint; through: bigint }[]>`select first, through from doubled_shares
    where boot_id = ${boot} order by first desc offset ${MOST_RUNS - 1}`;
  const [newest, oldest] = [old[0], old.at(-1)];
  if (newest === undefined || oldest === undefined || newest === oldest) return;
  await transaction`delete from doubled_shares
    where boot_id = ${boot} and first > ${oldest.first} and first <= ${newest.first}`;
  await transaction`update doubled_shares set through = ${newest.through}, is_exact = false
    where boot_id = ${boot} and first = ${oldest.first}`;
}

/** Those that reach beyond a sequence, in order. */
export async function doubledAfter(sql: Sql, bootId: string, after: number): Promise<DoubledRun[]> {
  const rows = await sql<{ first: bigint; through: bigint; is_exact: boolean }[]>`select first, through, is_exact
    from doubled_shares where boot_id = ${Buffer.from(bootId, 'hex')} and through > ${after} order by first`;
  return rows.map(({ first, through, is_exact: isExact }) => ({
    first: Number(first),
    through: Number(through),
    isExact,
  }));
}
