/** A front end's journal, its marks, and what makes receipts of it, over real books that a test closes slice by slice. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { rawPublicKey, signMessageAside } from '../../node/ml-dsa.ts';
import { BooksView } from '../../pool/api/books/books-view.ts';
import { ProofMaker } from '../../pool/api/books/proofs.ts';
import { ReceiptView } from '../../pool/api/miner/receipt-view.ts';
import type { Outbox, OutboxLine } from '../../pool/feed/outbox.ts';
import { sliceEndsOf } from '../../pool/feed/positions.ts';
import { SliceMarks } from '../../pool/feed/slice-marks.ts';
import { endsAfterNotes, TermsNotes } from '../../pool/feed/terms-notes.ts';
import { Journal, type JournalEntry } from '../../pool/journal/journal.ts';
import { encodeRecord, type ShareRecord } from '../../pool/journal/journal-record.ts';
import type { PoolKey } from '../../pool/receipts/pool-key.ts';
import { ReceiptMaker } from '../../pool/receipts/receipt-maker.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type BooksBed, openBooks } from './books-bed.ts';

export type FrontEnd = {
  readonly directory: string;
  readonly bootId: string;
  readonly journal: Journal;
  /** In their order; what was written of the journal. */
  readonly records: Uint8Array[];
  write(shares: readonly ShareRecord[]): Promise<void>;
};

export async function openFrontEnd(directory = join(temporaryDirectory(), 'journal'), byte = 0xab): Promise<FrontEnd> {
  const bootId = new Uint8Array(8).fill(byte);
  mkdirSync(join(directory, Buffer.from(bootId).toString('hex')), { recursive: true });
  const journal = await Journal.open({ directory, bootId });
  onTestFinished(() => journal.close());
  const records: Uint8Array[] = [];
  return {
    directory,
    bootId: journal.bootId,
    journal,
    records,
    async write(shares) {
      const bytes = shares.map(encodeRecord);
      await journal.append(bytes);
      records.push(...bytes);
    },
  };
}

export function newPoolKey(): PoolKey {
  const { privateKey } = generateKeyPairSync('ml-dsa-65');
  return { publicKey: rawPublicKey(privateKey), sign: (message) => signMessageAside(privateKey, message) };
}

export type ReceiptsBed = {
  readonly books: BooksBed;
  readonly marks: SliceMarks;
  readonly maker: ReceiptMaker;
  readonly view: ReceiptView;
  /** `service/slice/boot` of what was sent to connections. */
  readonly delivered: string[];
  /** Lines that were logged as a warning or an error. */
  readonly logged: string[];
  /** The books take what they do not have of a front end; with the slice that its marks say. Anchors beyond the slice `newest` are ignored. */
  take(end: FrontEnd, options?: { readonly marked?: boolean; readonly newest?: number }): Promise<void>;
  look(): Promise<void>;
};

/** A maker of its own, and books unless they are another's too; the front ends' disks outlive them. */
export async function openReceipts(key: PoolKey, ends: readonly FrontEnd[], shared?: BooksBed): Promise<ReceiptsBed> {
  const books = shared ?? (await openBooks());
  if (shared === undefined) onTestFinished(() => books.close());
  const { directory, journal, records: written } = ends[0] as FrontEnd;
  const push = (entries: readonly JournalEntry[]) => void written.push(...entries.map(({ record }) => record));
  const notes = new TermsNotes({ sql: books.sql, journal, outbox: { push } });
  const marks = new SliceMarks(directory);
  for (const { bootId } of ends) await marks.know(bootId);
  const lines = () =>
    ends.map(({ bootId, journal }) => ({ bootId, last: journal.nextSequence - 1 }) as unknown as OutboxLine);
  const [delivered, logged]: [string[], string[]] = [[], []];
  const sink = { write: (line: string) => void logged.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('test', { filter: readLevelFilter('warn'), format: 'text' }, { sink, now: Date.now });
  const maker = new ReceiptMaker(
    { network: 'development', directory },
    {
      sql: books.sql,
      outbox: { lines, marks } as unknown as Outbox,
      key,
      log,
      deliver: ({ head }) => void delivered.push(`${head.service}/${head.slice}/${head.boot}`),
    },
  );
  const proofs = new ProofMaker({ network: 'development' }, { sql: books.sql });
  const poolKey = async () => key.publicKey;
  const booksView = new BooksView({ network: 'development', address: '', poolKey }, { sql: books.sql });
  const view = new ReceiptView({ network: 'development' }, { sql: books.sql, proofs, books: booksView, poolKey });
  return {
    books,
    marks,
    maker,
    view,
    delivered,
    logged,
    async take({ bootId, records }, { marked = false, newest } = {}) {
      const entries = records.map((record, sequence) => {
        const slice = marked ? marks.sliceOf(bootId, sequence).slice : undefined;
        return { bootId, sequence, record, ...(slice === undefined ? {} : { slice }) };
      });
      await books.fenced((transaction) => books.intake.take(transaction, entries, newest));
    },
    look: () => marks.look(endsAfterNotes(sliceEndsOf(books.sql), notes)),
  };
}
