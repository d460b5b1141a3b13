/**
 * The rows of the table settings that say what the pool announces. Each change has an edition, a random name: editions
 * that are missing show that the database was replaced by an older copy of itself.
 */
import { randomBytes } from 'node:crypto';
import type { Transaction } from '../database/connect.ts';

const EDITIONS = 'terms_editions';
/** More changes than are made while an instance is away. */
const MOST_EDITIONS = 1_024;
const CHAIN = 'chain_id';
const ROWS = [
  'notice',
  'edit_pool_name',
  'edit_pause_note',
  'edit_payout_min',
  'edit_fee_pplns',
  'edit_fee_solo',
  'payout_min_started',
  'payout_min_schedule',
  'terms_in_force',
  'window_fee_from',
] as const;
export type TermsRow = (typeof ROWS)[number];

export type Terms = {
  /** Newest last. */
  readonly editions: readonly string[];
  /** The newest one that is open, -1 before the first: a database with a later one went on. */
  readonly slice: number;
  /** Slices are numbered by its heights: terms of another chain mean nothing. Null: not known yet. */
  readonly chain: string | null;
  readonly rows: Readonly<Partial<Record<string, string>>>;
};

/** One change after another, so that each has the value before it on record. */
export const lockTerms = (transaction: Transaction) => transaction`select pg_advisory_xact_lock(${0x5356_4310})`;

const put = (transaction: Transaction, row: string, value: string | null) =>
  value === null
    ? transaction`delete from settings where name = ${row}`
    : transaction`insert into settings values (${row}, ${value}) on conflict (name) do update set value = excluded.value`;

/** The only writer of these rows while the pool announces them. Null deletes one. */
export async function writeTerms(transaction: Transaction, row: TermsRow, value: string | null): Promise<void> {
  const [found] = await transaction<{ value: string }[]>`select value from settings where name = ${row}`;
  if ((found?.value ?? null) === value) return;
  await put(transaction, row, value);
  const [known] = await transaction<{ value: string }[]>`select value from settings where name = ${EDITIONS}`;
  await putEditions(transaction, [...editionsOf(known?.value), newEdition()]);
}

export const newEdition = (): string => randomBytes(8).toString('hex');

const editionsOf = (value: string | undefined): string[] => value?.split(' ') ?? [];

const putEditions = (transaction: Transaction, editions: readonly string[]) =>
  put(transaction, EDITIONS, editions.slice(-MOST_EDITIONS).join(' '));

export async function readTerms(transaction: Transaction): Promise<Terms> {
  const found = await transaction<{ name: string; value: string }[]>`select name, value from settings
    where name in ${transaction([...ROWS, EDITIONS, CHAIN])}`;
  const [newest] = await transaction<{ slice: number }[]>`select coalesce(max(number), -1)::int as slice from slices`;
  const {
    [EDITIONS]: editions,
    [CHAIN]: chain,
    ...rows
  } = Object.fromEntries(found.map((row) => [row.name, row.value]));
  return { editions: editionsOf(editions), slice: newest?.slice ?? -1, chain: chain ?? null, rows };
}

/** Returns the names of those that differed. */
export async function putBackTerms(
  transaction: Transaction,
  lost: Terms,
  terms: Pick<Terms, 'editions' | 'rows'>,
): Promise<TermsRow[]> {
  const differing = ROWS.filter((row) => lost.rows[row] !== terms.rows[row]);
  for (const row of differing) await put(transaction, row, terms.rows[row] ?? null);
  await putEditions(transaction, terms.editions);
  return differing;
}
