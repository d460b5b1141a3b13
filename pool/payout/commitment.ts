/** The head of the books that a payout carries (books rule 21): that of the newest slice that is closed in both services. */
import { commitmentText, headAt } from '../../protocol/books/books-commitment.ts';
import type { Sql, Transaction } from '../database/connect.ts';

export type StoredHead = { readonly slice: number; readonly head: Buffer };

/** In hex; undefined where the slice is not closed in both services. */
export async function headOf(sql: Sql | Transaction, slice: number): Promise<string | undefined> {
  const rows = await sql<{ service: number; chain: Buffer }[]>`select service, chain from slices
    where number = ${slice} and closed_height is not null`;
  const chain = (service: number) => rows.find((row) => row.service === service)?.chain.toString('hex');
  const [pplns, solo] = [chain(0), chain(1)];
  return pplns === undefined || solo === undefined ? undefined : headAt({ pplns, solo });
}

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
