/**
 * The input of credits: the work of closed slices, and the accounts in it. Neither ever changes, so both are cached,
 * slices for as long as they are in the window. Create a new one after a failed transaction: rows that it read may have
 * been rolled back.
 */
import type { RankedSlice, Window } from '../../protocol/books/pplns.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { AccountOrder } from './account-order.ts';
import { accountIdsOf, eachWork } from './packed.ts';

type Slice = { readonly number: number; readonly total: bigint; readonly leaves: Buffer };

export class ClosedWork {
  readonly accounts = new AccountOrder();
  /** The slices of the last window, by service. */
  readonly #slices = new Map<number, readonly Slice[]>();

  /** The slices of a window, with accounts by their rank in `accounts`; it holds until the next call. */
  async slicesOf(sql: Sql | Transaction, service: number, window: Window): Promise<Map<number, RankedSlice>> {
    const wanted = new Set(window.parts.map((part) => part.slice));
    const kept = (this.#slices.get(service) ?? []).filter(({ number }) => wanted.has(number));
    for (const { number } of kept) wanted.delete(number);
    const rows = await sql<{ number: number; total: string; leaves: Buffer }[]>`select number, total, leaves from slices
      where service = ${service} and number = any(${[...wanted]}::int[]) and closed_height is not null`;
    await this.accounts.know(sql, accountIdsOf(rows.map((row) => row.leaves)));
    const slices = [...kept, ...rows.map((row) => ({ ...row, total: BigInt(row.total) }))];
    this.#slices.set(service, slices);
    return new Map(
      slices.map(({ number, total, leaves }) => [
        number,
        { total, each: (tell) => eachWork(leaves, (id, work) => tell(this.accounts.rankOf(id), work)) },
      ]),
    );
  }
}
