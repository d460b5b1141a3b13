/**
 * Receipts for those who were away when they were sent (books rule 18), each slice with what the books hold of the account. Sheets are
 * kept as leaves; their trees are built again where they are asked for, and a few stay in memory.
 */
import { findAccount, type ReceiptDelivery, sharedDelivery } from '../../bridge/receipts.ts';
import type { SliceRecord } from '../../protocol/books-slice.ts';
import { ByteReader, type Bytes, toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { MembershipDocument } from '../../protocol/pool-proof.ts';
import {
  type Receipt,
  type ReceiptLeaf,
  readReceiptHead,
  readReceiptLeaf,
  receiptDocument,
  receiptSheet,
} from '../../protocol/receipt.ts';
import { entryOfBytes } from '../../protocol/stratum/receipt-messages.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal-record.ts';
import type { BooksView } from './books-view.ts';
import type { ProofMaker } from './proofs.ts';

/** Slices of one answer. */
const PAGE_SLICES = 8;
const KEPT_SHEETS = 8;

type SheetRow = { boot_id: Buffer; slice: number; service: number };

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
  readonly #sheets = new Map<string, Promise<ReceiptDelivery>>();

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

  /** The books are other books: after a fall of the database the sheets of a slice are made again, with what is open then. */
  forget(): void {
    this.#sheets.clear();
  }

  get network(): NetworkName {
    return this.#network;
  }

  /** Receipts of an account in slices after `after`, oldest first. */
  async ofAccount(payload: Bytes, after: number): Promise<ReceiptsDocument> {
    const key = await this.#poolKey();
    const [range] = await this.#sql<{ first: number | null; last: number | null }[]>`select min(slice) as first,
      max(slice) as last from receipt_sheets`;
    const numbers = await this.#sql<{ slice: number }[]>`select distinct slice from receipt_sheets
      where slice > ${after} order by slice limit ${PAGE_SLICES}`;
    const rows = await this.#sql<SheetRow[]>`select boot_id, slice, service from receipt_sheets
      where slice = any(${numbers.map(({ slice }) => slice)}::int[]) order by slice, service, boot_id`;
    const through = numbers.at(-1)?.slice ?? after;
    const slices: ReceiptSlice[] = [];
    for (const { slice } of numbers)
      for (const service of SERVICES.keys()) {
        const own = rows.filter((row) => row.slice === slice && row.service === service);
        const found = await this.#slice(service, slice, own, payload);
        if (found !== undefined) slices.push(found);
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
    rows: readonly SheetRow[],
    payload: Bytes,
  ): Promise<ReceiptSlice | undefined> {
    const receipts: Receipt[] = [];
    for (const row of rows) {
      const sheet = await this.#sheet(row);
      for (const entry of findAccount(sheet, payload))
        receipts.push(receiptDocument(sheet.head, sheet.signature, entryOfBytes(entry)));
    }
    if (receipts.length === 0) return undefined;
    const record = await this.#books.record(service, slice);
    if (record === undefined) return undefined;
    const leaf = await this.#proofs.leaf(service, slice, payload);
    return { service: SERVICES[service] as string, slice, receipts, leaf, record };
  }

  #sheet(row: SheetRow): Promise<ReceiptDelivery> {
    const key = `${row.slice} ${row.service} ${row.boot_id.toString('hex')}`;
    const kept = this.#sheets.get(key);
    if (kept !== undefined) return kept;
    const sheet = this.#read(row);
    this.#sheets.set(key, sheet);
    sheet.catch(() => this.#sheets.delete(key));
    const [oldest] = this.#sheets.keys();
    if (this.#sheets.size > KEPT_SHEETS && oldest !== undefined) this.#sheets.delete(oldest);
    return sheet;
  }

  async #read({ boot_id, slice, service }: SheetRow): Promise<ReceiptDelivery> {
    const [row] = await this.#sql<{ head: Buffer; signature: Buffer; leaves: Buffer }[]>`select head, signature, leaves
      from receipt_sheets where slice = ${slice} and service = ${service} and boot_id = ${boot_id}`;
    if (row === undefined) throw new Error('the receipts were removed');
    const reader = new ByteReader(row.leaves);
    const leaves: ReceiptLeaf[] = [];
    while (reader.left > 0) leaves.push(readReceiptLeaf(reader));
    const { entries } = receiptSheet(leaves);
    return sharedDelivery(readReceiptHead(new ByteReader(row.head)), new Uint8Array(row.signature), entries);
  }
}
