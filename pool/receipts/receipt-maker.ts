/**
 * Makes the receipts of a front end once slices have closed (books rules 17 to 19): reads its journals in a separate
 * thread, signs one head for each slice and service, stores the sheet in the database for miners that were offline, and
 * sends it to the connections. Journals of earlier starts are included: shares accepted before a crash get their
 * receipts from the next start.
 *
 * Slices are processed one after the other, each only once. Nothing is signed that is not in the books, no slice is
 * signed with two records (signed-slices.ts), and no share for two front ends (earlier-sheets.ts): a database replaced by an
 * older copy may have closed it differently.
 */
import type { ReceiptDelivery } from '../../bridge/shares/receipts.ts';
import { type ReceiptHead, receiptMessage, type SignedBooks } from '../../protocol/books/receipt.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Sql } from '../database/connect.ts';
import type { Outbox, OutboxLine } from '../feed/outbox.ts';
import { reignOf } from '../feed/positions.ts';
import type { SliceMark } from '../feed/slice-marks.ts';
import { doubledAfter } from '../journal/doubled-shares.ts';
import type { Service } from '../journal/journal-record.ts';
import { earlierSheets, type SignedSheet } from './earlier-sheets.ts';
import type { PoolKey } from './pool-key.ts';
import { type MadeSheet, runSheetThread, type SheetDesk } from './run-sheets.ts';
import { SheetStore } from './sheet-store.ts';
import { isSameSheet, SignedSlices } from './signed-slices.ts';
import type { SliceRange } from './tally.ts';

/** Maximum number of past slices of one boot to process. */
const MAX_SLICES = 256;
/** A sheet is made again if it took longer than this since the journal was read: its `open` would be out of date. */
const MAX_MAKING_MILLIS = 30_000;

export type ReceiptMakerOptions = { readonly network: NetworkName; readonly directory: string };

export type ReceiptMakerDependencies = {
  readonly sql: Sql;
  readonly outbox: Outbox;
  readonly key: PoolKey;
  readonly log: Logger;
  readonly deliver: (delivery: ReceiptDelivery) => void;
};

/** By the journal's marks; not compared with the books yet. */
type MarkedRange = Omit<SliceRange, 'held'>;

export class ReceiptMaker {
  readonly #options: ReceiptMakerOptions;
  readonly #dependencies: ReceiptMakerDependencies;
  readonly #store: SheetStore;
  #signed: SignedSlices | undefined;
  /** Newest slice that is done, by boot, and the term in which it was. */
  readonly #done = new Map<string, number>();
  #reign: string | undefined;
  /** A lower limit of slices, after earlier ones could not be made in time. */
  readonly #most = new Map<string, number>();
  /** The last failure, by boot, so that it is logged once. */
  readonly #failures = new Map<string, string>();
  /** Receipts made since the start. */
  made = 0;

  constructor(options: ReceiptMakerOptions, dependencies: ReceiptMakerDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#store = new SheetStore(dependencies.sql);
  }

  /** Called periodically, after the marks were read. Never rejects: failures are logged and tried again. */
  async round(): Promise<void> {
    const { sql, outbox } = this.#dependencies;
    const before = this.#reign;
    await this.#trying('', async () => {
      const reign = await reignOf(sql)();
      this.#signed ??= SignedSlices.open(this.#options.directory);
      if (reign !== before) {
        // The database may have been replaced by an older copy: missing sheets are made again, for the same slices.
        this.#done.clear();
        await this.#signed.tell(sql);
        this.#reign = reign;
      }
      await this.#signed.learn(sql);
    });
    // In a new term nothing is signed before the next round: by then every front end has told what it signed.
    const isNew = before !== undefined && before !== this.#reign;
    if (this.#signed === undefined || this.#failures.has('') || isNew) return;
    for (const line of outbox.lines())
      await this.#trying(line.bootId, () => this.#boot(line, outbox.marks.of(line.bootId)));
  }

  async #trying(boot: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failures.delete(boot);
    } catch (error) {
      const reason = (error as Error).message;
      if (this.#failures.get(boot) !== reason) this.#dependencies.log.warn('receipts were not made', { boot, reason });
      this.#failures.set(boot, reason);
    }
  }

  async #boot(line: OutboxLine, marks: readonly SliceMark[]): Promise<void> {
    const { bootId } = line;
    const newest = marks.at(-1);
    if (newest === undefined) return;
    const done = this.#done.get(bootId) ?? (await this.#store.doneOf(bootId));
    if (newest.slice <= done) return;
    const marked = rangesAfter(marks, done, await this.#firstSlice(marks)).slice(
      -(this.#most.get(bootId) ?? MAX_SLICES),
    );
    const ranges = await this.#store.closed(bootId, marked);
    const [first] = ranges;
    if (first === undefined && marked.length > 0) return;
    // Nothing of the boot in these slices, and nothing after them.
    const isEmpty = first === undefined || line.last <= first.after;
    const through = isEmpty ? (ranges.at(-1)?.slice ?? newest.slice) : await this.#make(line, ranges);
    if (through !== undefined) this.#done.set(bootId, through);
  }

  /** The pool's first slice, when the first mark is of it: then everything up to the mark is in it. */
  async #firstSlice([first]: readonly SliceMark[]): Promise<number | undefined> {
    if (first === undefined || first.through === -1) return undefined;
    const [row] = await this.#dependencies.sql<{ first: number | null }[]>`select min(number) as first from slices
      where service = 0`;
    return row?.first === first.slice ? first.slice : undefined;
  }

  /** The newest slice that is done; undefined if there is none. */
  async #make(line: OutboxLine, ranges: readonly SliceRange[]): Promise<number | undefined> {
    const { sql, log } = this.#dependencies;
    const { bootId } = line;
    const signed = this.#signed as SignedSlices;
    const doubled = await doubledAfter(sql, bootId, (ranges[0] as SliceRange).after);
    const slices = ranges.map(({ slice }) => slice);
    const known = await signed.sheetsOf(sql, slices);
    const earlier = await earlierSheets(sql, known);
    const until = performance.now() + MAX_MAKING_MILLIS;
    const isLate = () => performance.now() > until;
    let through: number | undefined;
    let isStopped = false;
    let books: SignedBooks | undefined;
    let asked: { service: Service; slice: number } | undefined;
    const desk: SheetDesk = {
      ask: async (service, slice) => {
        asked = { service, slice };
        // All earlier slices are done.
        through = ranges.findLast((range) => range.slice < slice)?.slice;
        const found = isLate() ? undefined : await this.#store.books(service, slice);
        if (found === undefined) {
          isStopped = true;
          return 'stop';
        }
        if (await this.#store.has(bootId, service, slice)) return 'skip';
        const reason = !(await signed.allows(sql, service, slice, found.signed))
          ? 'no receipts: another record of the slice was signed before'
          : earlier.lacking.has(`${service} ${slice}`)
            ? 'no receipts: the books do not have in the slice what was signed of it before'
            : undefined;
        if (reason !== undefined) {
          log.error(reason, { service, slice, boot: bootId });
          return 'skip';
        }
        books = found.signed;
        return found.booked;
      },
      take: async (sheet, less) => {
        if (less > 0)
          log.error('the books hold less work than was accepted: run svc-pool audit', {
            ...asked,
            boot: bootId,
            receipts: less,
          });
        if (await this.#finish(bootId, sheet, { books: books as SignedBooks, known }, isLate)) return 'go';
        isStopped = true;
        return 'stop';
      },
    };
    const { holed, unheld, belated } = await runSheetThread(
      { directory: this.#options.directory, bootId, ranges, doubled, leftOut: earlier, last: line.last },
      desk,
    );
    if (!isStopped) through = (ranges.at(-1) as SliceRange).slice;
    const isDone = (slice: number) => through !== undefined && slice <= through;
    for (const slice of holed.filter(isDone))
      log.warn('no receipts: the journal lacks entries of the slice', { slice, boot: bootId });
    for (const slice of unheld.filter(isDone))
      log.error('no receipts: the books do not have the slice as the journal has it', { slice, boot: bootId });
    for (const slice of belated.filter(isDone))
      log.warn('no receipts: the books were behind the chain when they closed the slice', { slice, boot: bootId });
    if (through !== undefined) this.#most.delete(bootId);
    else if (isLate()) this.#giveUpOldest(bootId, ranges);
    return through;
  }

  /**
   * Receipts of a slice also need the entries after it. If that takes too long, at least the newest slices are made.
   */
  #giveUpOldest(bootId: string, ranges: readonly SliceRange[]): void {
    const most = Math.max(1, ranges.length >> 1);
    this.#most.set(bootId, most);
    this.#dependencies.log.warn('receipts take too long', { boot: bootId, slices: ranges.length, next: most });
  }

  /**
   * Signs, stores and sends a sheet. False if it is too late for that, another record was signed meanwhile, a sheet became
   * known that this one would have to heed, or another term has begun.
   */
  async #finish(
    boot: string,
    sheet: MadeSheet,
    { books, known }: { readonly books: SignedBooks; readonly known: readonly SignedSheet[] },
    isLate: () => boolean,
  ): Promise<boolean> {
    const { sql, key, log, deliver } = this.#dependencies;
    const { service, slice, count, root } = sheet;
    if (isLate()) return false;
    const head: ReceiptHead = {
      network: this.#options.network,
      service,
      slice,
      boot,
      ...books,
      receipts: count,
      receipts_root: toHex(root),
    };
    const signed = this.#signed as SignedSlices;
    const own = { service, slice, boot, ...sheet.span };
    if (!(await signed.keep(sql, own, books))) return false;
    // Two that sign at the same time have both told it by now, and each sees the other's.
    const since = (await signed.sheetsOf(sql, [slice])).filter(
      (one) => one.service === service && ![own, ...known].some((before) => isSameSheet(before, one)),
    );
    const { lacking, shares, accounts } = await earlierSheets(sql, since);
    if (lacking.size + shares.size + accounts.size > 0) return false;
    // The books fell meanwhile, or may have: what the sheet counts was read before that.
    if ((await reignOf(sql)()) !== this.#reign) return false;
    const signature = await key.sign(receiptMessage(head));
    if (isLate()) return false;
    await this.#store.keep(head, signature, sheet);
    this.made += count;
    deliver({ head, signature, entries: sheet.entries, offsets: sheet.offsets });
    log.info('receipts made', { service, slice, boot, receipts: count });
    return true;
  }
}

/** Where the slices after `done` lie in the journal. Before the first mark only a pool's first slice is known. */
export function rangesAfter(
  marks: readonly SliceMark[],
  done: number,
  firstSlice: number | undefined,
): readonly MarkedRange[] {
  const ranges: MarkedRange[] = [];
  for (const [i, { slice, through }] of marks.entries()) {
    const after = i === 0 ? (slice === firstSlice ? -1 : undefined) : marks[i - 1]?.through;
    if (slice > done && after !== undefined) ranges.push({ slice, after, through });
  }
  return ranges;
}
