/**
 * Receipts for miners that were offline when they were sent (books rule 18), each slice with the account's leaf. Sheets
 * are stored in pages (receipts/sheet-pages.ts): only those that contain the account are read and hashed, so nothing is
 * kept in memory, and an account without receipts costs one lookup.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import { ADDRESS_PAYLOAD_BYTES } from '../../../protocol/address.ts';
import type { BooksService } from '../../../protocol/books/books-slice.ts';
import {
  type ReceiptEntry,
  type ReceiptHead,
  readReceiptHead,
  receiptDocument,
} from '../../../protocol/books/receipt.ts';
import { ByteReader, type Bytes, toHex } from '../../../protocol/bytes.ts';
import type { NetworkName } from '../../../protocol/network.ts';
import type { Sql } from '../../database/connect.ts';
import { SERVICES } from '../../journal/journal-record.ts';
import { entriesOfPage, openOfPage } from '../../receipts/sheet-pages.ts';
import { ApiRefusal } from '../api-error.ts';
import type { ReceiptSheetsDocument, ReceiptSlice, ReceiptsDocument } from '../books/books-documents.ts';
import type { BooksView } from '../books/books-view.ts';
import type { ProofMaker } from '../books/proofs.ts';

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

  /** Receipts of an account in slices after `after`, oldest first, at most some 250 of them. */
  async ofAccount(asked: Omit<AskedReceipts, 'worker'>): Promise<ReceiptsDocument> {
    return this.#answer(asked, (sheets) => ({
      receipts: sheets.flatMap(({ head, signature, entries }) =>
        entries.map((entry) => receiptDocument(head, signature, entry)),
      ),
    }));
  }

  /** The same of one worker, or of all: each signature once. */
  async sheets(asked: AskedReceipts): Promise<ReceiptSheetsDocument> {
    return this.#answer(asked, (sheets) => ({ sheets: sheets.map(sheetDocument) }));
  }

  /** Of each sheet that has the account one of its receipts, which says the work of all its workers, and what they have open together. */
  async sheetsOfAccount(asked: Omit<AskedReceipts, 'worker'>): Promise<ReceiptSheetsDocument> {
    return this.#answer({ ...asked, isOfAccount: true }, (sheets) => ({
      sheets: sheets.map((sheet) => ({ ...sheetDocument(sheet), account_open: String(sheet.open) })),
    }));
  }

  async #answer<T>(asked: AskedReceipts & { isOfAccount?: boolean }, shownAs: (sheets: readonly FoundSheet[]) => T) {
    const { payload, after, cursor, worker, isOfAccount = false, onBuilt = () => undefined } = asked;
    const place = readPlace(cursor);
    const key = await this.#poolKey();
    const [range] = await this.#sql<{ first: number | null; last: number | null }[]>`select min(slice) as first,
      max(slice) as last from receipt_sheets`;
    const numbers = await this.#sql<{ slice: number }[]>`select distinct slice from receipt_sheets
      where slice > ${after} or slice = ${place.slice} order by slice limit ${PAGE_SLICES}`;
    const rows = await this.#rows(
      numbers.map(({ slice }) => slice),
      place,
      { payload, worker, isOfAccount },
    );
    const found: Found[] = [];
    let count = 0;
    let read = 0;
    for (; read < Math.min(rows.length, PAGE_ROWS) && count <= ENOUGH_RECEIPTS; read++) {
      const row = rows[read] as PageRow;
      const { entries, built } = entriesOfPage(row, payload, worker);
      const whole = isOfAccount && entries.length > 0 ? await this.#openOf(row, payload) : undefined;
      if (whole !== undefined) addSheet(found, row, entries.slice(0, 1), whole.open);
      else if (entries.length > 0) addSheet(found, row, entries);
      count += whole?.pages ?? entries.length;
      onBuilt(built + (whole?.pages ?? 0));
      // Yields to other requests between two pages.
      await immediate();
    }
    const slices: (SliceBooks & T)[] = [];
    for (const { sheets, ...each } of found) {
      const books = await this.#booksOf(each, payload, onBuilt);
      if (books !== undefined) slices.push({ ...books, ...shownAs(sheets) });
    }
    const next = rows[read];
    const whole = next === undefined ? numbers : numbers.filter(({ slice }) => slice < next.slice);
    const through = whole.at(-1)?.slice ?? Math.max(0, after);
    return {
      api_version: 1 as const,
      pool_key: key === undefined ? null : toHex(key),
      kept_from: range?.first ?? null,
      newest: range?.last ?? null,
      through,
      more: next !== undefined || through < (range?.last ?? through),
      ...(next === undefined ? {} : { next_cursor: placeAfter(rows[read - 1] as PageRow) }),
      slices,
    };
  }

  /**
   * The pages that may have the account's receipts, after a place. Of one worker that is one page of each sheet: the last
   * that does not begin after it, because leaves are in the order of accounts and names. Of the account as a whole it is the first.
   */
  #rows(
    slices: readonly number[],
    place: ReturnType<typeof readPlace>,
    { payload, worker, isOfAccount }: Pick<AskedReceipts, 'payload' | 'worker'> & { isOfAccount: boolean },
  ): Promise<PageRow[]> {
    const sql = this.#sql;
    const account = Buffer.from(payload);
    const isOf = sql`p.slice = any(${slices}::int[]) and p.first_account <= ${account} and p.last_account >= ${account}`;
    const columns = sql`p.slice, p.service, p.boot_id, p.page, p.leaves, p.above, s.head, s.signature
      from receipt_pages p join receipt_sheets s using (slice, service, boot_id)`;
    if (isOfAccount)
      return sql<PageRow[]>`select distinct on (p.slice, p.service, p.boot_id) ${columns} where ${isOf}
        and (p.slice, p.service, p.boot_id) > (${place.slice}, ${place.service}, ${place.boot})
        order by p.slice, p.service, p.boot_id, p.page limit ${PAGE_ROWS + 1}`;
    if (worker === undefined)
      return sql<PageRow[]>`select ${columns} where ${isOf}
        and (p.slice, p.service, p.boot_id, p.page) > (${place.slice}, ${place.service}, ${place.boot}, ${place.page})
        order by p.slice, p.service, p.boot_id, p.page limit ${PAGE_ROWS + 1}`;
    const name = sql`substring(p.leaves from ${NAME_AT + 2}::int for get_byte(p.leaves, ${NAME_AT}::int))`;
    return sql<PageRow[]>`select distinct on (p.slice, p.service, p.boot_id) ${columns} where ${isOf}
      and (p.first_account < ${account} or ${name} <= ${Buffer.from(worker)})
      and (p.slice, p.service, p.boot_id) > (${place.slice}, ${place.service}, ${place.boot})
      order by p.slice, p.service, p.boot_id, p.page desc limit ${PAGE_ROWS + 1}`;
  }

  /** What the account's workers have open together in a sheet, and the pages that say so. */
  async #openOf({ slice, service, boot_id: boot }: PageRow, payload: Bytes): Promise<{ open: bigint; pages: number }> {
    const account = Buffer.from(payload);
    const pages = await this.#sql<{ leaves: Buffer }[]>`select leaves from receipt_pages
      where slice = ${slice} and service = ${service} and boot_id = ${boot}
      and first_account <= ${account} and last_account >= ${account}`;
    return { open: pages.reduce((sum, page) => sum + openOfPage(page, payload), 0n), pages: pages.length };
  }

  async #booksOf(
    { service, slice }: Pick<Found, 'service' | 'slice'>,
    payload: Bytes,
    onBuilt: (leaves: number) => void,
  ): Promise<SliceBooks | undefined> {
    const record = await this.#books.record(service, slice);
    if (record === undefined) return undefined;
    const leaf = await this.#proofs.leaf(service, slice, payload, onBuilt);
    return { service: SERVICES[service] as BooksService, slice, leaf, record };
  }
}

/** Where the name of a page's first worker begins: its length is before it. */
const NAME_AT = ADDRESS_PAYLOAD_BYTES;

export type AskedReceipts = {
  readonly payload: Bytes;
  readonly after: number;
  /** Only its receipts. */
  readonly worker?: string | undefined;
  /** From the answer before. One within slice 0 continues there, although no `after` can lie before slice 0. */
  readonly cursor?: string | undefined;
  /** Gets the number of leaves that had to be hashed. */
  readonly onBuilt?: (leaves: number) => void;
};

type FoundSheet = {
  readonly boot: Buffer;
  readonly head: ReceiptHead;
  readonly signature: Bytes;
  readonly entries: ReceiptEntry[];
  /** Of all workers, where that was asked for. */
  readonly open: bigint;
};
type Found = { readonly slice: number; readonly service: number; readonly sheets: FoundSheet[] };
type SliceBooks = Omit<ReceiptSlice, 'receipts'>;

/** Pages come in the order of slices, services and front ends. */
function addSheet(found: Found[], row: PageRow, entries: readonly ReceiptEntry[], open = 0n): void {
  const { slice, service, boot_id: boot, signature } = row;
  let last = found.at(-1);
  if (last?.slice !== slice || last.service !== service) {
    last = { slice, service, sheets: [] };
    found.push(last);
  }
  const sheet = last.sheets.at(-1);
  if (sheet?.boot.equals(boot) === true) sheet.entries.push(...entries);
  else
    last.sheets.push({ boot, signature, head: readReceiptHead(new ByteReader(row.head)), entries: [...entries], open });
}

/** A sheet with its head and signature once. */
function sheetDocument({
  head,
  signature,
  entries,
}: FoundSheet): ReceiptSheetsDocument['slices'][number]['sheets'][number] {
  const { receipts: count, ...named } = head;
  return {
    ...named,
    count,
    signature: toHex(signature),
    receipts: entries.map((entry) => {
      const { address, worker, shares, work, open, account_work, index, siblings } = receiptDocument(head, NONE, entry);
      return { address, worker, shares, work, open, account_work, index, siblings };
    }),
  };
}

const NONE = new Uint8Array(0);

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
