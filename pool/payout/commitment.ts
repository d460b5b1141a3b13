/** The head of the books that a payout carries (books rule 21): that of the newest slice that is closed in both services. */
import { commitmentText, headAt } from '../../protocol/books/books-commitment.ts';
import type { Sql, Transaction } from '../database/connect.ts';

export type StoredHead = { readonly slice: number; readonly head: Buffer };

/** Undefined while no slice is closed in both services: then nothing is credited, so nothing is due. */
export async function newestHead(sql: Sql | Transaction): Promise<StoredHead | undefined> {
  const [row] = await sql<{ slice: number; pplns: Buffer; solo: Buffer }[]>`select a.number as slice, a.chain as pplns,
      b.chain as solo
    from slices a join slices b on b.service = 1 and b.number = a.number
    where a.service = 0 and a.closed_height is not null and b.closed_height is not null
    order by a.number desc limit 1`;
  if (row === undefined) return undefined;
  const head = headAt({ pplns: row.pplns.toString('hex'), solo: row.solo.toString('hex') });
  return { slice: row.slice, head: Buffer.from(head, 'hex') };
}

/** The payload of a payout; null for one without a head. */
export const payloadTextOf = (number: number | null, slice: number | null, head: Buffer | null): string | null =>
  number === null || slice === null || head === null
    ? null
    : commitmentText({ number, slice, head: head.toString('hex') });
