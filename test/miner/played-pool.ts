/** A pool with one miner of its own, or one farm, played in memory, honest or with lies of its choice, and the miner's watch over its books. */
import type { BooksAlarm } from '../../miner/books/books-alarms.ts';
import { BooksWatch } from '../../miner/books/books-watch.ts';
import { foldWorkers } from '../../pool/receipts/tally.ts';
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { type SliceRecord, sliceChain } from '../../protocol/books/books-slice.ts';
import { branchDocument } from '../../protocol/books/pool-proof.ts';
import {
  compareReceipts,
  OTHERS,
  OWN_RECEIPTS,
  type Receipt,
  type ReceiptHead,
  type ReceiptLeaf,
  receiptDocument,
  receiptSheet,
} from '../../protocol/books/receipt.ts';
import { toHex } from '../../protocol/bytes.ts';
import { sumBranch, sumTree } from '../../protocol/crypto/sum-tree.ts';
import { entryOfBytes } from '../../protocol/stratum/receipt-messages.ts';
import { accountOf, addressOf } from '../bridge/stratum-client.ts';

const KEY = new Uint8Array(1952).fill(1);
const SIGNATURE = new Uint8Array(3309);
export const SLICE_MILLIS = 600_000;
/** Names that a stranger mined under for the miner's address. */
const STRANGERS = Array.from({ length: OWN_RECEIPTS }, (_, i) => ({ worker: `x${i}`, work: 20_000n, open: 0n }));
export const START_MILLIS = 1_790_000_000_000;

type Entry = { readonly worker: string; readonly work: bigint; readonly atMillis: number; slice: number | undefined };
type Lies = {
  readonly signsPart?: bigint;
  readonly booksPart?: bigint;
  readonly forgets?: boolean;
  readonly hides?: boolean;
  /** What it answers instead, where that is not undefined. */
  readonly answers?: (url: URL) => unknown;
  /** What it answers about its lists, where that is not undefined. */
  readonly lists?: (url: URL) => unknown;
  /** Slices in which so many names of a stranger did more work than the miner's worker that it has no receipt of its own. */
  readonly folds?: (slice: number) => boolean;
  /** Shares that it answers with accepted and forgets. */
  readonly drops?: (worker: string) => boolean;
  /** Workers with receipts of their own in a sheet; an honest pool has its own bound of them. */
  readonly ownReceipts?: number;
};

/** A pool with one miner of its own, or one farm: journals by boot, slices, receipts, books. Parts are in hundredths. */
export class PlayedPool {
  readonly journals = new Map<string, Entry[]>();
  readonly answers: { slice: number; receipts: Receipt[]; leaf: unknown; record: unknown }[] = [];
  readonly lies: Lies;
  newest = 10;
  boot = 'b0'.repeat(8);

  constructor(lies: Lies = {}) {
    this.lies = lies;
  }

  accept(work: bigint, atMillis: number, worker = 'w'): void {
    if (this.lies.drops?.(worker) === true) return;
    const journal = this.journals.get(this.boot) ?? [];
    journal.push({ worker, work, atMillis, slice: undefined });
    this.journals.set(this.boot, journal);
  }

  restart(number: number): void {
    this.boot = number.toString(16).padStart(16, '0');
  }

  /** Entries up to `taken` of what is waiting are in the slice that closes. Receipts are of what was there at `madeMillis`. */
  close(takes: (boot: string, waiting: number) => number, madeMillis: number): Receipt[] {
    const slice = ++this.newest;
    for (const [boot, journal] of this.journals) {
      const waiting = journal.filter((entry) => entry.slice === undefined && entry.atMillis <= madeMillis);
      for (const entry of waiting.slice(0, takes(boot, waiting.length))) entry.slice = slice;
    }
    const all = [...this.journals.values()].flat().filter((entry) => entry.slice === slice);
    const isFolded = this.lies.folds?.(slice) === true;
    const strangers = isFolded ? STRANGERS.reduce((work, each) => work + each.work, 0n) : 0n;
    const booked = (sum(all) * (this.lies.booksPart ?? 100n)) / 100n + strangers;
    const rows = booked > 0n ? [{ key: accountOf(1), value: booked }] : [{ key: accountOf(2), value: 1n }];
    const tree = sumTree(rows);
    const base: Omit<SliceRecord, 'chain'> = {
      network: 'development',
      service: 'pplns',
      slice,
      slice_cuts: 240,
      window_thousandths: 8000,
      fee_ppm: 0,
      target: 'ff'.repeat(32),
      window_work: '1',
      accounts: 1,
      total_work: String(tree.root.sum),
      root: toHex(tree.root.hash),
      previous: '00'.repeat(48),
    };
    const record = { ...base, chain: sliceChain(base) };
    const receipts: Receipt[] = [];
    for (const [boot, journal] of this.journals) {
      const there = journal.filter((entry) => entry.slice === slice || isOpen(entry, madeMillis));
      const signed = (entries: readonly Entry[]): bigint =>
        (sum(entries.filter((entry) => entry.slice === slice)) * (this.lies.signsPart ?? 100n)) / 100n;
      const of = (worker: string, entries: readonly Entry[]): ReceiptLeaf => ({
        account: accountOf(1),
        worker,
        shares: 1,
        work: signed(entries),
        open: this.lies.forgets ? 0n : sum(entries.filter((entry) => isOpen(entry, madeMillis))),
        accountWork: signed(there) + strangers,
      });
      const byWorker = Map.groupBy(there, ({ worker }) => (isFolded ? OTHERS : worker));
      const own = foldWorkers(
        [...byWorker].map(([worker, entries]) => of(worker, entries)),
        this.lies.ownReceipts,
      );
      const [first] = own;
      if (first === undefined) continue;
      const leaves = isFolded ? [...own, ...STRANGERS.map((each) => ({ ...first, ...each }))] : own;
      const sheet = receiptSheet(leaves.sort(compareReceipts));
      const head: ReceiptHead = {
        network: 'development',
        service: 'pplns',
        slice,
        boot,
        chain: record.chain,
        root: record.root,
        accounts: 1,
        total_work: record.total_work,
        receipts: leaves.length,
        receipts_root: toHex(sheet.root),
      };
      for (const leaf of own)
        receipts.push(
          receiptDocument(head, SIGNATURE, entryOfBytes(sheet.entries[leaves.indexOf(leaf)] as Uint8Array)),
        );
    }
    const branch = branchDocument(sumBranch(tree, 0));
    const leaf =
      booked > 0n
        ? { value: String(booked), branch }
        : { absent: { before: null, after: { address: addressOf(2), value: '1', branch } } };
    if (receipts.length > 0 && this.lies.hides !== true) this.answers.push({ slice, receipts, leaf, record });
    // A connection gets those of its own name.
    return receipts.filter(({ worker }) => worker !== OTHERS);
  }

  /** As the API answers: eight slices at a time. */
  readonly read = async (url: string): Promise<unknown> => {
    const list = /\/api\/v1\/(terms|slices)/.test(url) ? this.lies.lists?.(new URL(url)) : undefined;
    if (list !== undefined) return list;
    if (url.includes('/api/v1/terms'))
      return { network: 'development', address: 'pool', terms: { pplns: [], solo: [] } };
    if (url.includes('/api/v1/slices/')) return { slices: [] };
    const lie = this.lies.answers?.(new URL(url));
    if (lie !== undefined) return lie;
    const after = Number(new URL(url).searchParams.get('after'));
    const later = this.answers.filter(({ slice }) => slice > after);
    const page = later.slice(0, 8);
    const worker = new URL(url).searchParams.get('worker');
    const isAsked = (receipt: Receipt) => worker === null || receipt.worker === worker;
    const ofAccount = new URL(url).searchParams.get('of') === 'account';
    const slices = page
      .map((each) => (ofAccount ? { ...each, receipts: [], sheets: sheetsOf(each.receipts) } : each))
      .map((each) => ({ service: 'pplns', ...each, receipts: each.receipts.filter(isAsked) }))
      .filter(({ receipts }) => ofAccount || receipts.length > 0);
    const through = page.at(-1)?.slice ?? (this.lies.hides === true ? this.newest : after);
    const newest = this.answers.at(-1)?.slice ?? null;
    return JSON.parse(
      JSON.stringify({ kept_from: this.answers[0]?.slice ?? null, newest, through, more: later.length > 8, slices }),
    );
  };
}

const isOpen = ({ slice, atMillis }: Entry, madeMillis: number): boolean =>
  slice === undefined && atMillis <= madeMillis;

/** One receipt of each sheet, with what all of them have open. */
const sheetsOf = (receipts: readonly Receipt[]) =>
  [...Map.groupBy(receipts, ({ boot }) => boot)].map(([, [first, ...more]]) => {
    const {
      receipts: count,
      shares,
      work,
      open,
      account_work,
      index,
      siblings,
      address,
      worker,
      ...head
    } = first as Receipt;
    const all = [open, ...more.map((each) => each.open)].reduce((total, each) => total + BigInt(each), 0n);
    const own = { address, worker, shares, work, open, account_work, index, siblings };
    return { ...head, count, receipts: [own], account_open: String(all) };
  });

const sum = (entries: readonly Entry[]): bigint => entries.reduce((all, { work }) => all + work, 0n);

export class Played {
  readonly alarms: BooksAlarm[] = [];
  readonly warnings: string[] = [];
  now = 0;
  /** How often a signature was verified, and whether they are good. */
  verified = 0;
  isSigned = true;
  /** By how much the clock of the miner's machine is ahead. */
  clock = 0;
  readonly pool: PlayedPool;
  watch: BooksWatch;

  readonly #node: BooksSources['node'];

  readonly #worker: string | undefined;

  /** `node` is one that the miner trusts; with `farm` all of the address is watched, as by svc-proxy. */
  constructor(pool: PlayedPool, node: BooksSources['node'] = null, watches: 'worker' | 'farm' = 'worker') {
    this.pool = pool;
    this.#node = node;
    this.#worker = watches === 'farm' ? undefined : 'w';
    this.watch = this.#make();
  }

  #make(saved?: unknown): BooksWatch {
    const watch = new BooksWatch(
      { address: addressOf(1), worker: this.#worker, api: undefined, expectedKey: undefined },
      {
        read: this.pool.read,
        alarm: (alarm) => void this.alarms.push(alarm),
        note: () => {},
        warn: (message, fields) => void this.warnings.push(`${message} ${fields.part ?? ''}: ${fields.why ?? ''}`),
        wallMillis: () => START_MILLIS + this.now + this.clock,
        nowMillis: () => this.now,
        verify: () => {
          this.verified++;
          return this.isSigned;
        },
        node: this.#node,
      },
      saved,
    );
    watch.offered({ key: KEY, api: 'https://pool.example' });
    return watch;
  }

  /** kill -9: what was not saved is gone. */
  restart(saved: unknown): void {
    this.watch = this.#make(JSON.parse(JSON.stringify(saved)));
  }

  share(work: bigint, isAnswered = true, worker = 'w'): void {
    this.pool.accept(work, this.now, worker);
    if (isAnswered) this.watch.told(this.pool.boot, work);
  }

  async slice(takes: Parameters<PlayedPool['close']>[0], isPushed = true, ageMillis = 0): Promise<void> {
    const receipts = this.pool.close(takes, this.now - ageMillis);
    if (isPushed) for (const receipt of receipts) this.watch.received(receipt);
    await this.watch.check();
  }

  kinds(): string[] {
    return this.alarms.map(({ kind }) => kind);
  }
}

export const ALL = (_: string, waiting: number): number => waiting;

export async function mine(played: Played, slices: number): Promise<void> {
  await played.watch.check();
  for (let i = 0; i < slices; i++) {
    for (let minute = 0; minute < SLICE_MILLIS / 60_000; minute++) {
      played.now += 60_000;
      played.share(1_000n);
      await played.watch.check();
    }
    await played.slice(ALL);
  }
}
