/** Database access for receipts: the records of closed slices, and the sheets made so far. */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { encodeReceiptHead, type ReceiptHead, type SignedBooks } from '../../protocol/books/receipt.ts';
import { type Bytes, ByteWriter, toHex } from '../../protocol/bytes.ts';
import { madePayloads } from '../books/made-accounts.ts';
import { unpackWork } from '../books/packed.ts';
import { byteaTexts, type Sql } from '../database/connect.ts';
import { SERVICES, type Service } from '../journal/journal-record.ts';
import type { SheetPage } from './sheet-pages.ts';
import type { SliceRange } from './tally.ts';

/** How long receipts are available. */
const RECEIPT_HOURS = 24;
/** The newest slices keep theirs, whatever the clock says: miners have yet to compare them. */
const NEWEST_SLICES = 64;

type SliceRow = { chain: Buffer; root: Buffer; total: string; leaves: Buffer };

export class SheetStore {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The slice before the newest that has a sheet of the boot: of the newest itself one service may be missing. */
  async doneOf(bootId: string): Promise<number> {
    const [row] = await this.#sql<{ slice: number | null }[]>`select max(slice) as slice
      from receipt_sheets where boot_id = ${Buffer.from(bootId, 'hex')}`;
    return (row?.slice ?? 0) - 1;
  }

  /** The ranges up to the first whose slice is not closed, each with the entries of the boot that the books have in it. */
  async closed(bootId: string, ranges: readonly Omit<SliceRange, 'held'>[]): Promise<SliceRange[]> {
    if (ranges.length === 0) return [];
    const rows = await this.#sql<
      { number: number; closed_height: number }[]
    >`select number, max(closed_height)::int as closed_height from slices
      where number = any(${ranges.map(({ slice }) => slice)}::int[]) and closed_height is not null
      group by number having count(*) = ${SERVICES.length}`;
    const closed = new Map(rows.map((row) => [row.number, row.closed_height]));
    const open = ranges.findIndex(({ slice }) => !closed.has(slice));
    const ends = await this.#sql<{ slice: number; through: bigint }[]>`select slice, through from slice_ends
      where boot_id = ${Buffer.from(bootId, 'hex')} order by slice`;
    const endOf = (slice: number): number => Number(ends.findLast((end) => end.slice <= slice)?.through ?? -1);
    return ranges.slice(0, open === -1 ? ranges.length : open).map((range) => {
      const closedHeight = closed.get(range.slice) as number;
      return { ...range, held: { after: endOf(range.slice - 1), through: endOf(range.slice), closedHeight } };
    });
  }

  /** The record of a closed slice, and its leaves as rows of `account 49 || u128 work`. */
  async books(service: Service, slice: number): Promise<{ signed: SignedBooks; booked: Bytes } | undefined> {
    const [row] = await this.#sql<SliceRow[]>`select chain, root, total::text as total, leaves from slices
      where number = ${slice} and service = ${SERVICES.indexOf(service)} and closed_height is not null`;
    if (row === undefined) return undefined;
    const work = unpackWork(row.leaves);
    const payloads = await madePayloads(
      this.#sql,
      work.map(({ accountId }) => accountId),
    );
    const booked = new ByteWriter(Math.max(16, work.length * (ADDRESS_PAYLOAD_BYTES + 16)));
    for (const { accountId, value } of work) booked.raw(payloads.get(accountId) as Buffer).u128(value);
    const signed = {
      chain: row.chain.toString('hex'),
      root: row.root.toString('hex'),
      accounts: work.length,
      total_work: row.total,
    };
    return { signed, booked: booked.done() };
  }

  async has(bootId: string, service: Service, slice: number): Promise<boolean> {
    const rows = await this.#sql`select 1 from receipt_sheets where slice = ${slice}
      and service = ${SERVICES.indexOf(service)} and boot_id = ${Buffer.from(bootId, 'hex')}`;
    return rows.length > 0;
  }

  async keep(head: ReceiptHead, signature: Bytes, { pages }: { readonly pages: readonly SheetPage[] }): Promise<void> {
    const boot = Buffer.from(head.boot, 'hex');
    const service = SERVICES.indexOf(head.service);
    const column = (of: (page: SheetPage) => Bytes): string[] => byteaTexts(pages.map((page) => toHex(of(page))));
    await this.#sql.begin(async (transaction) => {
      const kept = await transaction`insert into receipt_sheets (boot_id, slice, service, head, signature)
        values (${boot}, ${head.slice}, ${service}, ${Buffer.from(encodeReceiptHead(head))}, ${Buffer.from(signature)})
        on conflict do nothing returning 1`;
      if (kept.length > 0)
        await transaction`insert into receipt_pages
            (slice, service, boot_id, page, first_account, last_account, leaves, above)
          select ${head.slice}, ${service}, ${boot}::bytea, number - 1, first_account, last_account, leaves, above
          from unnest(${column(({ firstAccount }) => firstAccount)}::text[]::bytea[],
            ${column(({ lastAccount }) => lastAccount)}::text[]::bytea[],
            ${column(({ leaves }) => leaves)}::text[]::bytea[], ${column(({ above }) => above)}::text[]::bytea[])
            with ordinality as p(first_account, last_account, leaves, above, number)`;
      // Those that another instance deletes already are left to it.
      await transaction`delete from receipt_sheets where (slice, service, boot_id) in (select slice, service, boot_id
        from receipt_sheets where made_at < now() - ${RECEIPT_HOURS} * interval '1 hour' and slice <= ${head.slice - NEWEST_SLICES}::int
        for update skip locked)`;
    });
  }
}
