/**
 * Checks commitments (books rule 21): the head in each payout, in the books and on the ledger, is the one computed from
 * the slices.
 */
import { commitmentPayload, readCommitment } from '../../protocol/books/books-commitment.ts';
import type { Sql } from '../database/connect.ts';
import { headOf } from '../payout/commitment.ts';
import { type Findings, REMEDIES } from './findings.ts';

/** The newest cut in the books; -1 for none. */
export async function reachedBy(sql: Sql): Promise<number> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
  return Number(row?.value ?? -1);
}

/** Heads by slice, from the chains of both services; callers ask in payout order, so caching the last one is enough. */
export class Heads {
  readonly #sql: Sql;
  #kept: { readonly slice: number; readonly head: string | undefined } | undefined;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether a slice was closed at a cut, but the books, replaced by an older copy, have not reached its end again. */
  async isUnreached(slice: number, height: number): Promise<boolean> {
    const [row] = await this.#sql<{ slice_cuts: number }[]>`select slice_cuts from slices order by number desc limit 1`;
    const closes = (slice + 1) * (row?.slice_cuts ?? 1);
    return closes <= height && closes > (await reachedBy(this.#sql));
  }

  async at(slice: number): Promise<string | undefined> {
    if (this.#kept?.slice === slice) return this.#kept.head;
    const head = await headOf(this.#sql, slice);
    this.#kept = { slice, head };
    return head;
  }
}

export async function auditCommitments(sql: Sql, findings: Findings): Promise<void> {
  const heads = new Heads(sql);
  const rows = await sql<{ id: string; number: bigint | null; books_slice: number; books_head: Buffer }[]>`select id,
    number, books_slice, books_head from payouts where books_slice is not null order by books_slice, number`;
  for (const row of rows) {
    const head = (await heads.at(row.books_slice)) ?? 'no such slice';
    findings.compare(`payout ${row.id}: head of the books`, row.books_head.toString('hex'), head);
  }
  await auditNumbers(sql, findings);
}

/** Payouts are numbered from 1 on without a gap (books rule 16). */
async function auditNumbers(sql: Sql, findings: Findings): Promise<void> {
  const gaps = await sql<{ after: bigint; number: bigint }[]>`select coalesce(before, 0) as after, number from (
      select number, lag(number) over (order by number) as before from payouts where number is not null) p
    where number <> coalesce(before, 0) + 1 order by number`;
  for (const { after, number } of gaps)
    findings.add(
      `payouts between number ${after} and number ${number}`,
      'none',
      'a payout for each number',
      REMEDIES.payment,
    );
}

type Carried = {
  readonly number: bigint | null;
  readonly books_slice: number | null;
  readonly books_head: Buffer | null;
  readonly final_height: bigint | null;
};

/**
 * The commitment of the transaction on the ledger. A payout that was restored from the wallet's record has no head of
 * its own.
 */
export async function auditCarried(
  name: string,
  { number, books_slice: slice, books_head: head, final_height: height }: Carried,
  payloadHex: string,
  heads: Heads,
  findings: Findings,
): Promise<void> {
  if (slice !== null && head !== null) {
    const due = commitmentPayload({ number: Number(number), slice, head: head.toString('hex') });
    findings.compare(`${name}: commitment`, due, payloadHex, REMEDIES.payment);
    return;
  }
  const carried = readCommitment(payloadHex);
  if (carried === undefined) findings.add(`${name}: commitment`, 'none', 'a head of the books', REMEDIES.payment);
  else if (await heads.isUnreached(carried.slice, Number(height ?? 0)))
    findings.skip(name, 'the books have not reached the slice that it commits yet');
  else findings.compare(`${name}: head of the books`, await heads.at(carried.slice), carried.head);
}
