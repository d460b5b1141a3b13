/**
 * The shares of a journal that counted before (docs/protocol/books.md, rule 14), from another journal or from an earlier
 * place in this one. No receipt may count them once more (rule 17), and those of other miners beside them must have theirs:
 * so each is on record as long as the journal's ends are, from which receipts are made (books/slices.ts). Each costs its
 * miner a share, as each raw share does.
 */
import { createHash } from 'node:crypto';
import type { Bytes } from '../../protocol/bytes.ts';
import { toHex } from '../../protocol/bytes.ts';
import { byteaTexts, type Sql, type Transaction } from '../database/connect.ts';

export type DoubledShare = {
  readonly bootId: string;
  readonly sequence: number;
  readonly service: number;
  readonly accountId: number;
  readonly work: bigint;
  readonly anchorHeight: number;
  readonly identity: Bytes;
};

const READ_ROWS = 10_000;

export async function noteDoubled(transaction: Transaction, shares: readonly DoubledShare[]): Promise<void> {
  const column = <T>(of: (share: DoubledShare) => T): T[] => shares.map(of);
  await transaction`insert into doubled_shares (boot_id, sequence, service, account_id, work, anchor_height, identity)
    select * from unnest(${byteaTexts(column(({ bootId }) => bootId))}::text[]::bytea[],
      ${column(({ sequence }) => sequence)}::bigint[], ${column(({ service }) => service)}::smallint[],
      ${column(({ accountId }) => accountId)}::int[], ${column(({ work }) => String(work))}::numeric[],
      ${column(({ anchorHeight }) => anchorHeight)}::bigint[],
      ${byteaTexts(column(({ identity }) => toHex(identity)))}::text[]::bytea[])`;
}

/** Their sequences beyond one, in order. Of a copy of a journal these are millions. */
export async function doubledAfter(sql: Sql, bootId: string, after: number): Promise<Float64Array> {
  const found: number[] = [];
  const cursor = sql<{ sequence: bigint }[]>`select sequence from doubled_shares
    where boot_id = ${Buffer.from(bootId, 'hex')} and sequence > ${after} order by sequence`.cursor(READ_ROWS);
  for await (const rows of cursor) for (const { sequence } of rows) found.push(Number(sequence));
  return Float64Array.from(found);
}

const NAME_DIGITS = 32;

/** A short name of some of these shares, by their sequences; the database makes the same (receipts/earlier-sheets.ts). */
export const nameOfDoubled = (sequences: readonly number[]): string =>
  createHash('sha256').update(sequences.join(',')).digest('hex').slice(0, NAME_DIGITS);
