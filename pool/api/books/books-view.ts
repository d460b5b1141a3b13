/**
 * The published parts of a pool's books (docs/protocol/books.md, rules 2, 3, 12 and 13), without proofs: the terms by
 * slice, the records of closed slices with their leaves, and the head of each credit list.
 */
import { formatAddress } from '../../../protocol/address.ts';
import type { Infer } from '../../../protocol/api/schema.ts';
import type { BooksService, SliceRecord } from '../../../protocol/books/books-slice.ts';
import type { TermsFrom } from '../../../protocol/books/books-terms.ts';
import type { CommitmentRow } from '../../../protocol/books/ledger-payouts.ts';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';
import type { NetworkName } from '../../../protocol/network.ts';
import { madePayloads } from '../../books/made-accounts.ts';
import { unpackWork } from '../../books/packed.ts';
import { windowFeeStart } from '../../books/terms-in-force.ts';
import type { Sql } from '../../database/connect.ts';
import { SERVICES } from '../../journal/journal-record.ts';
import { ApiRefusal } from '../api-error.ts';
import { type Page, pageOf, readNumberCursor } from '../keyset.ts';
import type * as b from './books-documents.ts';

type RecordRow = {
  number: number;
  window_work: string;
  slice_cuts: number;
  window_thousandths: number;
  fee_ppm: number;
  target: Buffer;
  total: string;
  root: Buffer;
  accounts: number;
  previous: Buffer;
  chain: Buffer;
};

type CommitmentDbRow = {
  number: bigint;
  state: 'submitted' | 'finalized' | 'void';
  transaction_id: Buffer | null;
  final_height: bigint | null;
  books_slice: number | null;
  books_head: Buffer | null;
};

type CreditRow = { reward: bigint | null; fee: bigint | null; credited: bigint | null; credit_root: Buffer | null };

/** More leaves than any slice has. */
const MAX_LEAVES = 100_000_000;

export type BooksViewOptions = {
  readonly network: NetworkName;
  readonly address: string;
  /** The public key that receipts are signed with. */
  readonly poolKey?: () => Promise<Bytes | undefined>;
};

export class BooksView {
  readonly #options: BooksViewOptions;
  readonly #sql: Sql;

  constructor(options: BooksViewOptions, dependencies: { sql: Sql }) {
    this.#options = options;
    this.#sql = dependencies.sql;
  }

  #record(service: number, row: RecordRow): SliceRecord {
    return {
      network: this.#options.network,
      service: SERVICES[service] as BooksService,
      slice: row.number,
      slice_cuts: row.slice_cuts,
      window_thousandths: row.window_thousandths,
      fee_ppm: row.fee_ppm,
      target: row.target.toString('hex'),
      window_work: row.window_work,
      accounts: row.accounts,
      total_work: row.total,
      root: row.root.toString('hex'),
      previous: row.previous.toString('hex'),
      chain: row.chain.toString('hex'),
    };
  }

  /** Closed slices, newest first, each with its record and the total of its rewards. */
  async slices(service: number, page: Page): Promise<Infer<typeof b.slices>> {
    const before = readNumberCursor(page.cursor) ?? 2_147_483_647;
    const rows = await this.#sql<(RecordRow & CreditRow)[]>`select s.number, s.window_work::text, s.slice_cuts,
        s.window_thousandths, s.fee_ppm, s.target, s.total::text, s.root, octet_length(s.leaves) / 20 as accounts,
        s.previous, s.chain, c.reward, c.fee, c.credited, c.root as credit_root
      from slices s left join credit_lists c on c.service = s.service and c.slice = s.number
      where s.service = ${service} and s.number < ${before} and s.closed_height is not null
      order by s.number desc limit ${page.limit + 1}`;
    const { rows: shown, more } = pageOf(rows, page.limit, (row) => `${row.number}-0`);
    return {
      api_version: 1,
      slices: shown.map((row) => ({
        ...this.#record(service, row),
        credits:
          row.credit_root === null
            ? null
            : {
                reward_atoms: String(row.reward),
                fee_atoms: String(row.fee),
                credited_atoms: String(row.credited),
                root: row.credit_root.toString('hex'),
              },
      })),
      ...more,
    };
  }

  /** The record of one closed slice. */
  async record(service: number, slice: number): Promise<SliceRecord | undefined> {
    const { slices } = await this.slices(service, { cursor: `${slice + 1}-0`, limit: 1 });
    const [shown] = slices;
    if (shown?.slice !== slice) return undefined;
    const { credits: _, ...record } = shown;
    return record;
  }

  /** A closed slice's leaves, in the order of its tree. The cursor is the place of the next one. */
  async leaves(service: number, slice: number, page: Page): Promise<Infer<typeof b.leaves>> {
    const from = Math.min(readNumberCursor(page.cursor) ?? 0, MAX_LEAVES);
    const [row] = await this.#sql<{ leaves: Buffer; accounts: number }[]>`select
        substring(leaves from ${from * 20 + 1}::int for ${page.limit * 20}::int) as leaves,
        octet_length(leaves) / 20 as accounts
      from slices where service = ${service} and number = ${slice} and closed_height is not null`;
    if (row === undefined) throw new ApiRefusal('not_found', 'this slice is not closed');
    const leaves = unpackWork(row.leaves);
    const payloads = await madePayloads(
      this.#sql,
      leaves.map((leaf) => leaf.accountId),
    );
    const end = from + leaves.length;
    return {
      api_version: 1,
      service: SERVICES[service] as BooksService,
      slice,
      accounts: row.accounts,
      leaves: leaves.map((leaf) => ({
        address: formatAddress(payloads.get(leaf.accountId) as Buffer, this.#options.network),
        work: String(leaf.value),
      })),
      ...(end < row.accounts ? { next_cursor: `${end}-0` } : {}),
    };
  }

  /** The terms and the slice from which each holds; the first entry is the pool's first slice. */
  async terms(): Promise<Infer<typeof b.terms>> {
    // Read before the terms, so that they include those of the slice that contains this cut.
    const [height] = await this.#sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
    const windowFeeFrom = await windowFeeStart(this.#sql);
    const terms = {} as Record<BooksService, TermsFrom[]>;
    for (const [service, name] of SERVICES.entries())
      terms[name] = await this.#sql<
        TermsFrom[]
      >`select number as from_slice, slice_cuts, window_thousandths, fee_ppm from (
          select number, slice_cuts, window_thousandths, fee_ppm,
            lag((slice_cuts, window_thousandths, fee_ppm)) over (order by number) as before
          from slices where service = ${service}) s
        where before is distinct from (slice_cuts, window_thousandths, fee_ppm) order by number`.then((rows) => [
        ...rows,
      ]);
    const { network, address } = this.#options;
    const key = await this.#options.poolKey?.();
    return {
      api_version: 1,
      network,
      address,
      ...(key === undefined ? {} : { pool_key: toHex(key) }),
      ...(height === undefined ? {} : { height: Number(height.value) }),
      ...(windowFeeFrom === undefined ? {} : { window_fee_from: windowFeeFrom }),
      terms,
    };
  }

  /**
   * Blocks of a slice whose rewards the ledger may have paid, by how they were credited: with its own list, or with a later one (books rule 7).
   * One that is held (rule 15) is with no list yet. Blocks of before the pool's first slice are with the first.
   */
  async blocks(service: number, slice: number): Promise<Infer<typeof b.sliceBlocks>> {
    const rows = await this.#sql<{ block_id: Buffer; slice: number; state: 'paid' | 'held' }[]>`select b.block_id,
        b.slice, b.state from blocks b
      join slices s on s.service = b.service and s.number = ${slice}
      where b.service = ${service} and b.state in ('paid', 'held')
        and b.anchor_height >= case when exists (select from slices e where e.service = ${service} and e.number < ${slice})
          then ${slice}::bigint * s.slice_cuts else 0 end
        and b.anchor_height < (${slice}::bigint + 1) * s.slice_cuts
      order by b.block_id`;
    return {
      api_version: 1,
      service: SERVICES[service] as BooksService,
      slice,
      blocks: rows.map((row) => ({
        block_id: row.block_id.toString('hex'),
        state: row.state,
        credited_with: row.state === 'held' ? null : row.slice,
      })),
    };
  }

  /** Payouts by number, each with the head of the books that it carries (books rule 21). With a slice: those that cover it. */
  async commitments(page: Page, slice: number | undefined): Promise<Infer<typeof b.commitments>> {
    const after = readNumberCursor(page.cursor) ?? 0;
    const covering = slice === undefined ? this.#sql`` : this.#sql`and books_slice >= ${slice}`;
    const rows = await this.#sql<CommitmentDbRow[]>`select number, state, transaction_id, final_height, books_slice,
        books_head
      from payouts where number > ${after} and state in ('submitted', 'finalized', 'void') ${covering}
      order by number limit ${page.limit + 1}`;
    const { rows: shown, more } = pageOf(rows, page.limit, (row) => `${row.number}-0`);
    return {
      api_version: 1,
      commitments: shown.map(
        (row): CommitmentRow => ({
          number: Number(row.number),
          state: row.state === 'submitted' ? 'pending' : row.state,
          transaction_id: row.transaction_id?.toString('hex') ?? null,
          final_height: row.final_height === null ? null : Number(row.final_height),
          slice: row.books_slice,
          head: row.books_head?.toString('hex') ?? null,
        }),
      ),
      ...more,
    };
  }
}
