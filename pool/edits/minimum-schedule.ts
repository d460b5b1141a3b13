/**
 * The pool's smallest payout, as announced over time by the options and by edits (books rule 3): a lower one counts at once,
 * a higher one a day after it was announced, whichever way it was changed. So in force is the lowest of those that were
 * announced or valid within the last day.
 */
import type { Sql, Transaction } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';
import { writeTerms } from './terms-rows.ts';

export const MINIMUM_NOTICE_MILLIS = 24 * 3_600_000;
const ROW = 'payout_min_schedule';
/** More changes within a day than anybody needs: the oldest one is then forgotten only if it is not the lowest. */
const MOST = 64;

/** The wish of the operator from a time on, ascending. */
export type Minimums = readonly { readonly atoms: bigint; readonly atMillis: number }[];
export type MinimumChange = { readonly atoms: bigint; readonly fromMillis: number };

const endOf = (minimums: Minimums, i: number): number => minimums[i + 1]?.atMillis ?? Number.POSITIVE_INFINITY;

/** Undefined if nothing was ever announced. */
export function minimumAt(minimums: Minimums, nowMillis: number): bigint | undefined {
  const counting = minimums.filter((_, i) => endOf(minimums, i) > nowMillis - MINIMUM_NOTICE_MILLIS);
  return counting.reduce<bigint | undefined>(
    (least, { atoms }) => (least === undefined || atoms < least ? atoms : least),
    undefined,
  );
}

/** The changes to come. */
export function minimumChanges(minimums: Minimums, nowMillis: number): MinimumChange[] {
  const changes: MinimumChange[] = [];
  let last = minimumAt(minimums, nowMillis);
  for (let i = 0; i + 1 < minimums.length; i++) {
    const fromMillis = endOf(minimums, i) + MINIMUM_NOTICE_MILLIS;
    const atoms = fromMillis > nowMillis ? minimumAt(minimums, fromMillis) : last;
    if (atoms !== undefined && atoms !== last) changes.push({ atoms, fromMillis });
    last = atoms;
  }
  return changes;
}

/** A clock that was set back neither shortens a notice nor prolongs it: what seems to come was announced by now. */
export function withMinimum(minimums: Minimums, atoms: bigint, nowMillis: number): Minimums {
  const known = minimums.map((each) => ({ ...each, atMillis: Math.min(each.atMillis, nowMillis) }));
  if (known.at(-1)?.atoms === atoms) return known;
  const all = [...known, { atoms, atMillis: nowMillis }];
  const counting = all.filter((_, i) => endOf(all, i) > nowMillis - MINIMUM_NOTICE_MILLIS);
  if (counting.length <= MOST) return counting;
  const [first, second, ...rest] = counting as [Minimums[number], Minimums[number], ...Minimums];
  // As if the lower of the two had been valid for both times: a notice becomes no shorter.
  return [{ atoms: first.atoms < second.atoms ? first.atoms : second.atoms, atMillis: first.atMillis }, ...rest];
}

/** Undefined for a text that the pool did not write. */
export function parseMinimums(text: string): Minimums | undefined {
  try {
    const value = JSON.parse(text) as readonly { atoms: string; at: number }[];
    const minimums = value.map(({ atoms, at }) => ({ atoms: BigInt(atoms), atMillis: at }));
    const isWhole = minimums.every(
      ({ atoms, atMillis }, i) =>
        atoms > 0n && Number.isSafeInteger(atMillis) && atMillis >= (minimums[i - 1]?.atMillis ?? 0),
    );
    return isWhole ? minimums : undefined;
  } catch {
    return undefined;
  }
}

export async function readMinimums(sql: Sql | Transaction): Promise<Minimums> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${ROW}`;
  const minimums = row === undefined ? [] : parseMinimums(row.value);
  if (minimums === undefined)
    throw new PoolError(
      'terms_unreadable',
      `the row ${ROW} of the table settings was changed and cannot be read: ${row?.value.slice(0, 200)}; restore it from a backup, or delete it, and the minimum of the next start counts at once`,
    );
  return minimums;
}

export const minimumsText = (minimums: Minimums): string =>
  JSON.stringify(minimums.map(({ atoms, atMillis }) => ({ atoms: String(atoms), at: atMillis })));

export const writeMinimums = (transaction: Transaction, minimums: Minimums): Promise<void> =>
  writeTerms(transaction, ROW, minimumsText(minimums));
