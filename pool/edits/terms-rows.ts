/**
 * The rows of the table settings that say what the pool announces. They have an edition, which rises with each change:
 * a lower one than before shows that the database was replaced by an older copy of itself.
 */
import type { Transaction } from '../database/connect.ts';

const EDITION = 'terms_edition';
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
  readonly edition: number;
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
  await transaction`insert into settings values (${EDITION}, '1')
    on conflict (name) do update set value = (settings.value::bigint + 1)::text`;
}

export async function readTerms(transaction: Transaction): Promise<Terms> {
  const found = await transaction<{ name: string; value: string }[]>`select name, value from settings
    where name in ${transaction([...ROWS, EDITION, CHAIN])}`;
  const { [EDITION]: edition, [CHAIN]: chain, ...rows } = Object.fromEntries(found.map((row) => [row.name, row.value]));
  return { edition: Number(edition ?? 0), chain: chain ?? null, rows };
}

/** Returns the names of those that differed. */
export async function putBackTerms(transaction: Transaction, lost: Terms, terms: Terms): Promise<TermsRow[]> {
  const differing = ROWS.filter((row) => lost.rows[row] !== terms.rows[row]);
  for (const row of differing) await put(transaction, row, terms.rows[row] ?? null);
  await put(transaction, EDITION, String(terms.edition));
  return differing;
}
