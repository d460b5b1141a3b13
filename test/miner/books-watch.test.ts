/**
 * The miner's watch over a pool's books, against pools that are played: an honest one is never accused, however late, crashing and unlucky it is; each
 * kind of lie is said once, with evidence where the pool's signature shows it.
 */
import { expect, test } from 'vitest';
import { type BooksAlarm, BooksWatch } from '../../miner/books/books-watch.ts';
import { LATE_SLICES } from '../../miner/books/told-ledger.ts';
import { type SliceRecord, sliceChain } from '../../protocol/books-slice.ts';
import { toHex } from '../../protocol/bytes.ts';
import { branchDocument } from '../../protocol/pool-proof.ts';
import { type Receipt, type ReceiptHead, receiptDocument, receiptSheet } from '../../protocol/receipt.ts';
import { entryOfBytes } from '../../protocol/stratum/receipt-messages.ts';
import { sumBranch, sumTree } from '../../protocol/sum-tree.ts';
import { accountOf, addressOf } from '../bridge/stratum-client.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../node/bed.ts';

const KEY = new Uint8Array(1952).fill(1);
const SIGNATURE = new Uint8Array(3309);
const SLICE_MILLIS = 600_000;

type Entry = { readonly work: bigint; readonly atMillis: number; slice: number | undefined };
type Lies = {
  readonly signsPart?: bigint;
  readonly booksPart?: bigint;
  readonly forgets?: boolean;
  readonly hides?: boolean;
};

/** A pool with one miner of its own: journals by boot, slices, receipts, books. Parts are in hundredths. */
class PlayedPool {
  readonly journals = new Map<string, Entry[]>();
  readonly answers: { slice: number; receipts: Receipt[]; leaf: unknown; record: unknown }[] = [];
  readonly lies: Lies;
  newest = 10;
  boot = 'b0'.repeat(8);

  constructor(lies: Lies = {}) {
    this.lies = lies;
  }

  accept(work: bigint, atMillis: number): void {
    const journal = this.journals.get(this.boot) ?? [];
    journal.push({ work, atMillis, slice: undefined });
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
    const booked = (sum(all) * (this.lies.booksPart ?? 100n)) / 100n;
    const rows = booked > 0n ? [{ key: accountOf(1), value: booked }] : [{ key: accountOf(2), value: 1n }];
    const tree = sumTree(rows);
    const base: Omit<SliceRecord, 'chain'> = {
      ...{ network: 'development', service: 'pplns', slice, slice_cuts: 240, window_thousandths: 8000, fee_ppm: 0 },
      ...{ target: 'ff'.repeat(32), window_work: '1', accounts: 1, total_work: String(tree.root.sum) },
      ...{ root: toHex(tree.root.hash), previous: '00'.repeat(48) },
    };
    const record = { ...base, chain: sliceChain(base) };
    const receipts: Receipt[] = [];
    for (const [boot, journal] of this.journals) {
      const own = sum(journal.filter((entry) => entry.slice === slice));
      const open = sum(journal.filter((entry) => entry.slice === undefined && entry.atMillis <= madeMillis));
      if (own + open === 0n) continue;
      const signed = (own * (this.lies.signsPart ?? 100n)) / 100n;
      const leaf = {
        account: accountOf(1),
        worker: 'w',
        shares: 1,
        work: signed,
        open: this.lies.forgets ? 0n : open,
        accountWork: signed,
      };
      const sheet = receiptSheet([leaf]);
      const head: ReceiptHead = {
        ...{ network: 'development', service: 'pplns', slice, boot, chain: record.chain, root: record.root },
        ...{ accounts: 1, total_work: record.total_work, receipts: 1, receipts_root: toHex(sheet.root) },
      };
      receipts.push(receiptDocument(head, SIGNATURE, entryOfBytes(sheet.entries[0] as Uint8Array)));
    }
    const branch = branchDocument(sumBranch(tree, 0));
    const leaf =
      booked > 0n
        ? { value: String(booked), branch }
        : { absent: { before: null, after: { address: addressOf(2), value: '1', branch } } };
    if (receipts.length > 0 && this.lies.hides !== true) this.answers.push({ slice, receipts, leaf, record });
    return receipts;
  }

  /** As the API answers: eight slices at a time. */
  readonly read = async (url: string): Promise<unknown> => {
    const after = Number(new URL(url).searchParams.get('after'));
    const later = this.answers.filter(({ slice }) => slice > after);
    const slices = later.slice(0, 8).map((each) => ({ service: 'pplns', ...each }));
    const through = slices.at(-1)?.slice ?? (this.lies.hides === true ? this.newest : after);
    const newest = this.answers.at(-1)?.slice ?? null;
    return JSON.parse(
      JSON.stringify({ kept_from: this.answers[0]?.slice ?? null, newest, through, more: later.length > 8, slices }),
    );
  };
}

const sum = (entries: readonly Entry[]): bigint => entries.reduce((all, { work }) => all + work, 0n);

class Played {
  readonly alarms: BooksAlarm[] = [];
  now = 0;
  readonly pool: PlayedPool;
  watch: BooksWatch;

  constructor(pool: PlayedPool) {
    this.pool = pool;
    this.watch = this.#make();
  }

  #make(): BooksWatch {
    const watch = new BooksWatch(
      { address: addressOf(1), worker: 'w', api: undefined, expectedKey: undefined },
      {
        read: this.pool.read,
        alarm: (alarm) => void this.alarms.push(alarm),
        note: () => {},
        nowMillis: () => this.now,
        verify: () => true,
      },
    );
    watch.offered({ key: KEY, api: 'https://pool.example' });
    return watch;
  }

  /** kill -9: what was not saved is gone. */
  restart(saved: unknown): void {
    this.watch = this.#make();
    this.watch.restore(JSON.parse(JSON.stringify(saved)));
    this.watch.offered({ key: KEY, api: 'https://pool.example' });
  }

  share(work: bigint, isAnswered = true): void {
    this.pool.accept(work, this.now);
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

const ALL = (_: string, waiting: number): number => waiting;

async function mine(played: Played, slices: number): Promise<void> {
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

test('an honest pool is never accused, however late, crashing and unlucky', async () => {
  for (let run = 0; run < count({ quick: 2, full: 4, deep: 60 }); run++) {
    const random = randomOf(seed + run);
    const played = new Played(new PlayedPool());
    let saved: unknown = played.watch.save();
    let behind = false;
    for (let step = 0; step < 300; step++) {
      played.now += random(60_000);
      const act = random(100);
      if (act < 60) played.share(BigInt(1 + random(1_000)), random(20) > 0);
      else if (act < 75) await played.watch.check();
      else if (act < 78) played.pool.restart(1 + random(1_000_000));
      else if (act < 81) played.restart(saved);
      else if (act < 84) behind = !behind;
      else if (act < 88) saved = played.watch.save();
      // Several slices at once, with nothing in them, as after an outage; or a journal that is only partly taken in.
      else if (act < 91)
        for (let i = 0; i < random(5); i++) await played.slice(() => 0, random(2) === 0, random(20_000));
      else {
        const late = behind;
        await played.slice((_, waiting) => (late ? random(waiting + 1) : waiting), random(3) > 0, random(20_000));
      }
    }
    for (let i = 0; i < 3; i++) {
      played.now += SLICE_MILLIS;
      await played.slice(ALL);
    }
    expect(played.kinds(), `run ${run}`).toEqual([]);
    expect(played.watch.newest).toBe(played.pool.answers.at(-1)?.slice ?? -1);
  }
});

test('books that hold less than the receipts are noticed in the first slice, with evidence', async () => {
  const played = new Played(new PlayedPool({ booksPart: 95n }));
  await mine(played, 1);
  expect(played.alarms).toMatchObject([{ kind: 'books_less', fields: { slice: 11, signed: 10_000n, booked: 9_500n } }]);
  expect(played.alarms[0]?.evidence?.receipts.length).toBe(1);
  // Each slice is said once, also after a restart of the miner.
  await mine(played, 1);
  played.restart(played.watch.save());
  await played.watch.check();
  expect(played.kinds()).toEqual(['books_less', 'books_less']);
});

test('a pool that signs a twentieth less than it answered is noticed within a few slices', async () => {
  const played = new Played(new PlayedPool({ signsPart: 95n, booksPart: 95n }));
  await mine(played, 8);
  expect(played.kinds()[0]).toBe('receipts_less');
  expect(played.alarms[0]?.fields.slice).toBeLessThanOrEqual(16);
});

test('work that only ever waits is noticed in the end', async () => {
  const played = new Played(new PlayedPool());
  await played.watch.check();
  for (let i = 0; i < LATE_SLICES + 5; i++) {
    played.now += SLICE_MILLIS;
    if (i < 2) played.share(1_000n);
    await played.watch.check();
    await played.slice(() => 0);
  }
  expect(new Set(played.kinds())).toEqual(new Set(['late']));
});

test('another key, books that are not shown, receipts that nobody signed', async () => {
  const played = new Played(new PlayedPool({ hides: true }));
  await mine(played, 1);
  for (let i = 0; i < 6; i++) await played.watch.check();
  expect(played.kinds()).toEqual(['books_hidden']);
  played.watch.offered({ key: new Uint8Array(1952).fill(2), api: '' });
  expect(played.kinds().at(-1)).toBe('key_changed');
  const [receipt] = new PlayedPool({}).close(ALL, 0);
  expect(receipt).toBeUndefined();
});
