/** Reads the fees that an operator has set, when a slice opens. */
import type { Sql, Transaction } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';
import { type FeeSchedule, feeAt, parseSchedule } from './fee-schedule.ts';

const ROWS = ['edit_fee_pplns', 'edit_fee_solo'] as const;

/** Row of the table settings, by service. */
export const feeRow = (service: number) => ROWS[service] as (typeof ROWS)[number];

export async function readSchedule(sql: Sql | Transaction, service: number): Promise<FeeSchedule> {
  const name = feeRow(service);
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${name}`;
  const schedule = row === undefined ? [] : parseSchedule(row.value);
  if (schedule === undefined)
    throw new PoolError(
      'terms_unreadable',
      `the row ${name} of the table settings was changed and cannot be read: ${row?.value.slice(0, 200)}; restore it from a backup, or delete it, and slices that are not open yet have the fee of the options`,
    );
  return schedule;
}

/** Undefined if the fee of the options counts. */
export const editedFee = async (sql: Sql | Transaction, service: number, slice: number): Promise<number | undefined> =>
  feeAt(await readSchedule(sql, service), slice);
