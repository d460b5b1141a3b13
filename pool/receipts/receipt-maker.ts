/**
 * Makes the receipts of a front end once slices have closed (books rules 17 to 19): reads its journals in a thread of its own, signs
 * one head for each slice and service, keeps the sheet in the database for those who were away, and sends it to the connections.
 * A journal of an earlier start is treated alike: what it accepted before a crash gets its receipts from the next start.
 */
import { Worker } from 'node:worker_threads';
import type { ReceiptDelivery } from '../../bridge/receipts.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { encodeReceiptHead, type ReceiptHead, receiptMessage } from '../../protocol/receipt.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Sql } from '../database/connect.ts';
import type { Outbox, OutboxLine } from '../feed/outbox.ts';
import { reignOf } from '../feed/positions.ts';
import type { SliceMark } from '../feed/slice-marks.ts';
import { SERVICES } from '../journal-record.ts';
import type { PoolKey } from './pool-key.ts';
import type { MadeSheet, SheetAnswer, SheetOrder } from './sheet-thread.ts';
import type { SliceRange } from './tally.ts';

/** How long receipts can be asked for. */
export const RECEIPT_HOURS = 24;
/** Slices of one boot that are caught up with in one go. */
const MAX_SLICES = 256;
/** A sheet that took longer from the reading of the journal is made again: `open` would be of too long ago. */
const MAX_MAKING_MILLIS = 30_000;

export type ReceiptMakerOptions = { readonly network: NetworkName; readonly directory: string };

export type ReceiptMakerDependencies = {
  readonly sql: Sql;
  readonly outbox: Outbox;
  readonly key: PoolKey;
  readonly log: Logger;
  readonly deliver: (delivery: ReceiptDelivery) => void;
};

type SliceRow = { number: number; service: number; chain: Buffer; root: Buffer; accounts: number; total: string };

export class ReceiptMaker {
  readonly #options: ReceiptMakerOptions;
  readonly #dependencies: ReceiptMakerDependencies;
  /** Newest slice that is dealt with, by boot, and the term that this is true of. */
  readonly #done = new Map<string, number>();
  #reign: string | undefined;
  /** Receipts made since the start. */
  made = 0;

  constructor(options: ReceiptMakerOptions, dependencies: ReceiptMakerDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  /** To be called again and again, after the marks were looked at. */
  async round(): Promise<void> {
    const { sql, outbox } = this.#dependencies;
    const reign = await reignOf(sql)();
    // Perhaps the database fell back: sheets that it does not have are made again, of the same slices.
    if (reign !== this.#reign) this.#done.clear();
    this.#reign = reign;
    for (const line of outbox.lines()) await this.#boot(line, outbox.marks.of(line.bootId));
  }

  async #boot(line: OutboxLine, marks: readonly SliceMark[]): Promise<void> {
    const newest = marks.at(-1);
    if (newest === undefined) return;
    const done = this.#done.get(line.bootId) ?? (await this.#lastMade(line.bootId));
    if (newest.slice <= done) return;
    const ranges = rangesAfter(marks, done, await this.#firstSlice(marks)).slice(-MAX_SLICES);
    const [first] = ranges;
    // Nothing of the boot in these slices, and nothing after them.
    if (first !== undefined && line.last > first.after && !(await this.#make(line, ranges))) return;
    this.#done.set(line.bootId, newest.slice);
  }

  async #lastMade(bootId: string): Promise<number> {
    const [row] = await this.#dependencies.sql<{ slice: number | null }[]>`select max(slice) as slice
      from receipt_sheets where boot_id = ${Buffer.from(bootId, 'hex')}`;
    return row?.slice ?? -1;
  }

  /** The pool's first slice, when the first mark is of it: then everything up to the mark is in it. */
  async #firstSlice([first]: readonly SliceMark[]): Promise<number | undefined> {
    if (first === undefined || first.through === -1) return undefined;
    const [row] = await this.#dependencies.sql<{ first: number | null }[]>`select min(number) as first from slices
      where service = 0`;
    return row?.first === first.slice ? first.slice : undefined;
  }

  /** False when it is to be tried again. */
  async #make(line: OutboxLine, ranges: readonly SliceRange[]): Promise<boolean> {
    const { sql, log, key, deliver } = this.#dependencies;
    const began = performance.now();
    const rows = await sql<SliceRow[]>`select number, service, chain, root, octet_length(leaves) / 20 as accounts,
        total::text as total
      from slices where number = any(${ranges.map(({ slice }) => slice)}::int[]) and closed_height is not null`;
    const order = { directory: this.#options.directory, bootId: line.bootId, ranges, last: line.last };
    const { sheets, holed } = await runSheetThread(order);
    for (const slice of holed) log.warn('no receipts: the journal lacks entries of the slice', { slice });
    const ready: { sheet: MadeSheet; head: ReceiptHead; signature: Uint8Array }[] = [];
    for (const sheet of sheets) {
      const row = rows.find((each) => each.number === sheet.slice && SERVICES[each.service] === sheet.service);
      if (row === undefined) return false;
      const head = this.#head(line.bootId, sheet, row);
      ready.push({ sheet, head, signature: await key.sign(receiptMessage(head)) });
    }
    if (performance.now() - began > MAX_MAKING_MILLIS) {
      log.warn('receipts took too long and are made again', { slices: ranges.length });
      return false;
    }
    await sql.begin(async (transaction) => {
      for (const { sheet, head, signature } of ready)
        await transaction`insert into receipt_sheets (boot_id, slice, service, head, signature, leaves)
          values (${Buffer.from(line.bootId, 'hex')}, ${sheet.slice}, ${SERVICES.indexOf(sheet.service)},
            ${Buffer.from(encodeReceiptHead(head))}, ${Buffer.from(signature)}, ${Buffer.from(sheet.leaves)})
          on conflict do nothing`;
      await transaction`delete from receipt_sheets where made_at < now() - ${RECEIPT_HOURS} * interval '1 hour'`;
    });
    for (const { sheet, head, signature } of ready) {
      this.made += sheet.count;
      deliver({ head, signature, entries: sheet.entries, offsets: sheet.offsets });
      log.info('receipts made', { service: head.service, slice: head.slice, boot: head.boot, receipts: sheet.count });
    }
    return true;
  }

  #head(boot: string, { service, slice, count, root }: MadeSheet, row: SliceRow): ReceiptHead {
    return {
      network: this.#options.network,
      service,
      slice,
      boot,
      chain: row.chain.toString('hex'),
      root: row.root.toString('hex'),
      accounts: row.accounts,
      total_work: row.total,
      receipts: count,
      receipts_root: toHex(root),
    };
  }
}

/** Where the slices after `done` lie in the journal. Of what stands before the first mark only a pool's first slice is known. */
export function rangesAfter(
  marks: readonly SliceMark[],
  done: number,
  firstSlice: number | undefined,
): readonly SliceRange[] {
  const ranges: SliceRange[] = [];
  for (const [i, { slice, through }] of marks.entries()) {
    const after = i === 0 ? (slice === firstSlice ? -1 : undefined) : marks[i - 1]?.through;
    if (slice > done && after !== undefined) ranges.push({ slice, after, through });
  }
  return ranges;
}

/** Runs the thread once; it ends by itself. */
export function runSheetThread(order: SheetOrder): Promise<SheetAnswer> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./sheet-thread.ts', import.meta.url), { name: 'receipts', workerData: order });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)));
  });
}
