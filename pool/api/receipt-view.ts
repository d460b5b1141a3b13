/**
 * Receipts for miners that were offline when they were sent (books rule 18), each slice with the account's leaf. Sheets
 * are stored in pages (receipts/sheet-pages.ts): only those that contain the account are read and hashed, so nothing is
 * kept in memory, and an account without receipts costs one lookup.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import type { BooksService } from '../../protocol/books-slice.ts';
import { ByteReader, type Bytes, toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { type Receipt, readReceiptHead, receiptDocument } from '../../protocol/receipt.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal-record.ts';
import { entriesOfPage } from '../receipts/sheet-pages.ts';
import { ApiRefusal } from './api-error.ts';
import type { ReceiptSlice, ReceiptsDocument } from './books-documents.ts';
import type { BooksView } from './books-view.ts';
import type { ProofMaker } from './proofs.ts';

/** Slices in one answer, and sheet pages read for it. */
const PAGE_SLICES = 8;
const PAGE_ROWS = 32;
/** No page is read after this many receipts, of which each is some 8 KB: an account may have thousands of workers in one slice. */
const ENOUGH_RECEIPTS = 224;

type PageRow = {
  slice: number;
  service: number;
  boot_id: Buffer;
  page: number;
  leaves: Buffer;
  above: Buffer;
  head: Buffer;
  signature: Buffer;
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

  /**
   * Receipts of an account in slices after `after`, oldest first, at most some 250 of them. `onBuilt` gets the number
   * of leaves that had to be hashed; `cursor` is from the previous answer. A cursor within slice 0 continues there,
   * although no `after` can lie before slice 0.
   */
  async ofAccount(
    payload: Bytes,
    after: number,
    onBuilt: (leaves: number) => void = () => undefined,
    cursor?: string,
  ): Promise<ReceiptsDocument> {
    const place = readPlace(cursor);
    const key = await this.#poolKey();
    const [range] = await this.#sql<{ first: number | null; last: number | null }[]>`select min(slice) as first,
      max(slice) as last from receipt_sheets`;
    const numbers = await this.#sql<{ slice: number }[]>`select distinct slice from receipt_sheets
      where slice > ${after} or slice = ${place.slice} order by slice limit ${PAGE_SLICES}`;
    const account = Buffer.from(payload);
    const rows = await this.#sql<PageRow[]>`select p.slice, p.service, p.boot_id, p.page, p.leaves, p.above, s.head,
        s.signature
      from receipt_pages p join receipt_sheets s using (slice, service, boot_id)
      where p.slice = any(${numbers.map(({ slice }) => slice)}::int[])
        and p.first_account <= ${account} and p.last_account >= ${account}
        and (p.slice, p.service, p.boot_id, p.page) > (${place.slice}, ${place.service}, ${place.boot}, ${place.page})
      order by p.slice, p.service, p.boot_id, p.page limit ${PAGE_ROWS + 1}`;
    const found: Found[] = [];
    let count = 0;
    let read = 0;
    for (; read < Math.min(rows.length, PAGE_ROWS) && count <= ENOUGH_RECEIPTS; read++) {
      const row = rows[read] as PageRow;
      const { entries, built } = entriesOfPage(row, payload);
      const head = readReceiptHead(new ByteReader(row.head));
      const receipts = entries.map((entry) => receiptDocument(head, row.signature, entry));
      const last = found.at(-1);
      if (last?.slice === row.slice && last.service === row.service) last.receipts.push(...receipts);
      else found.push({ slice: row.slice, service: row.service, receipts });
      count += receipts.length;
      onBuilt(built);
      // Yields to other requests between two pages.
      await immediate();
    }
    const slices: ReceiptSlice[] = [];
    for (const each of found) {
      const slice = await this.#slice(each, payload, onBuilt);
      if (slice !== undefined) slices.push(slice);
    }
    const next = rows[read];
    const whole = next === undefined ? numbers : numbers.filter(({ slice }) => slice < next.slice);
    const through = whole.at(-1)?.slice ?? Math.max(0, after);
    return {
      api_version: 1,
      pool_key: key === undefined ? null : toHex(key),
      kept_from: range?.first ?? null,
      newest: range?.last ?? null,
      through,
      more: next !== undefined || through < (range?.last ?? through),
      ...(next === undefined ? {} : { next_cursor: placeAfter(rows[read - 1] as PageRow) }),
      slices,
    };
  }

  async #slice(
    { service, slice, receipts }: Found,
    payload: Bytes,
    onBuilt: (leaves: number) => void,
  ): Promise<ReceiptSlice | undefined> {
    if (receipts.length === 0) return undefined;
    const record = await this.#books.record(service, slice);
    if (record === undefined) return undefined;
    const leaf = await this.#proofs.leaf(service, slice, payload, onBuilt);
    return { service: SERVICES[service] as BooksService, slice, receipts, leaf, record };
  }
}

type Found = { readonly slice: number; readonly service: number; readonly receipts: Receipt[] };

const placeAfter = ({ slice, service, boot_id, page }: PageRow): string =>
  `${slice}-${service}-${boot_id.toString('hex')}-${page}`;

/** The last sheet page that was read; without a cursor, a position before all. */
function readPlace(cursor: string | undefined) {
  if (cursor === undefined) return { slice: -1, service: 0, boot: Buffer.alloc(0), page: 0 };
  const [, slice, service, boot = '', page] = CURSOR.exec(cursor) ?? [];
  const place = { slice: Number(slice), service: Number(service), boot: Buffer.from(boot, 'hex'), page: Number(page) };
  if (!(place.slice <= MAX_INTEGER && place.page <= MAX_INTEGER))
    throw new ApiRefusal('bad_request', 'cursor is not one that this API returned');
  return place;
}

/** The default of `after`: slice 0 is after it too. */
export const BEFORE_ALL = -1;

const CURSOR = /^(\d{1,10})-([01])-([0-9a-f]{16})-(\d{1,10})$/;
const MAX_INTEGER = 2_147_483_647;
