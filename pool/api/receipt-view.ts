/**
 * Receipts for those who were away when they were sent (books rule 18), each slice with what the books hold of the account. Sheets are
 * kept in pages (receipts/sheet-pages.ts): only those that the account stands in are read and hashed, so nothing is kept in memory, and who has
 * no receipts costs a lookup.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import type { SliceRecord } from '../../protocol/books-slice.ts';
import { ByteReader, type Bytes, toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { MembershipDocument } from '../../protocol/pool-proof.ts';
import { type Receipt, readReceiptHead, receiptDocument } from '../../protocol/receipt.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal-record.ts';
import { entriesOfPage } from '../receipts/sheet-pages.ts';
import type { BooksView } from './books-view.ts';
import type { ProofMaker } from './proofs.ts';

/** Slices of one answer. */
const PAGE_SLICES = 8;
/** An answer with this many receipts ends with the slice: an account may have thousands of workers. */
const ENOUGH_RECEIPTS = 256;

type PageRow = {
  slice: number;
  service: number;
  page: number;
  leaves: Buffer;
  above: Buffer;
  head: Buffer;
  signature: Buffer;
};

export type ReceiptSlice = {
  readonly service: string;
  readonly slice: number;
  readonly receipts: readonly Receipt[];
  /** The account's leaf in the closed slice, or its absence, and the slice's record. */
  readonly leaf: MembershipDocument;
  readonly record: SliceRecord;
};

export type ReceiptsDocument = {
  readonly api_version: 1;
  readonly pool_key: string | null;
  /** The oldest slice of which receipts are still kept; null when there are none. */
  readonly kept_from: number | null;
  readonly newest: number | null;
  /** The newest slice that this answer goes up to: ask on from there. */
  readonly through: number;
  readonly more: boolean;
  readonly slices: readonly ReceiptSlice[];
};

export class ReceiptView {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #proofs: ProofMaker;
  readonly #books: BooksView;
  readonly #poolKey: () => Promise<Bytes | undefined>;

  constructor(
    options: { readonly network: NetworkName },
    dependencies: { sql: Sql; proofs: ProofMaker; books: BooksView; poolKey: () => Promise<Bytes | undefined> },
  ) {
    this.#network = options.network;
    this.#sql = dependencies.sql;
    this.#proofs = dependencies.proofs;
    this.#books = dependencies.books;
    this.#poolKey = dependencies.poolKey;
  }

  get network(): NetworkName {
    return this.#network;
  }

  /** Receipts of an account in slices after `after`, oldest first. `onBuilt` hears of leaves that had to be hashed. */
  async ofAccount(
    payload: Bytes,
    after: number,
    onBuilt: (leaves: number) => void = () => undefined,
  ): Promise<ReceiptsDocument> {
    const key = await this.#poolKey();
    const [range] = await this.#sql<{ first: number | null; last: number | null }[]>`select min(slice) as first,
      max(slice) as last from receipt_sheets`;
    const numbers = await this.#sql<{ slice: number }[]>`select distinct slice from receipt_sheets
      where slice > ${after} order by slice limit ${PAGE_SLICES}`;
    const account = Buffer.from(payload);
    const rows = await this.#sql<PageRow[]>`select p.slice, p.service, p.page, p.leaves, p.above, s.head, s.signature
      from receipt_pages p join receipt_sheets s using (slice, service, boot_id)
      where p.slice = any(${numbers.map(({ slice }) => slice)}::int[])
        and p.first_account <= ${account} and p.last_account >= ${account}
      order by p.slice, p.service, p.boot_id, p.page`;
    const slices: ReceiptSlice[] = [];
    let through = numbers.at(-1)?.slice ?? after;
    let count = 0;
    for (const { slice } of numbers) {
      for (const service of SERVICES.keys()) {
        const own = rows.filter((row) => row.slice === slice && row.service === service);
        const found = await this.#slice(service, slice, own, payload, onBuilt);
        if (found !== undefined) slices.push(found);
        count += found?.receipts.length ?? 0;
      }
      if (count < ENOUGH_RECEIPTS) continue;
      through = slice;
      break;
    }
    return {
      api_version: 1,
      pool_key: key === undefined ? null : toHex(key),
      kept_from: range?.first ?? null,
      newest: range?.last ?? null,
      through,
      more: through < (range?.last ?? through),
      slices,
    };
  }

  async #slice(
    service: number,
    slice: number,
    rows: readonly PageRow[],
    payload: Bytes,
    onBuilt: (leaves: number) => void,
  ): Promise<ReceiptSlice | undefined> {
    const receipts: Receipt[] = [];
    for (const row of rows) {
      const { entries, built } = entriesOfPage(row, payload);
      const head = readReceiptHead(new ByteReader(row.head));
      for (const entry of entries) receipts.push(receiptDocument(head, row.signature, entry));
      onBuilt(built);
      // Others have their turn between two pages.
      await immediate();
    }
    if (receipts.length === 0) return undefined;
    const record = await this.#books.record(service, slice);
    if (record === undefined) return undefined;
    const leaf = await this.#proofs.leaf(service, slice, payload, onBuilt);
    return { service: SERVICES[service] as string, slice, receipts, leaf, record };
  }
}
