/**
 * The miner's watch over a pool's books, against pools that are played: an honest one is never accused, however late, crashing and unlucky it is; each
 * kind of lie is said once, with evidence where the pool's signature shows it.
 */
import { expect, onTestFinished, test, vi } from 'vitest';
import { LATE_SLICES, ToldLedger, toldName } from '../../miner/books/accepted-work.ts';
import { BooksWatch } from '../../miner/books/books-watch.ts';
import { PageBooks } from '../../miner/browser/page-books.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { ALL, mine, Played, PlayedPool, SLICE_MILLIS } from './played-pool.ts';

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
  expect(played.alarms[0]?.evidence).toMatchObject({ receipts: [{ slice: 11 }] });
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

test('a pool that gives jobs of one service and books their work under the other', async () => {
  const played = new Played(new PlayedPool());
  const told = played.watch.told.bind(played.watch);
  played.watch.told = (boot, work) => told(boot, work, 'solo');
  await mine(played, 6);
  expect(played.alarms).toMatchObject([{ kind: 'job_service' }]);
  // Two rigs of one name, one on each service: each has receipts of its own.
  const honest = new Played(new PlayedPool());
  await mine(honest, 6);
  expect(honest.kinds()).toEqual([]);
});

test('receipts of the other service that were made before any work was told prove nothing of that work', () => {
  const ledger = new ToldLedger();
  ledger.close(10, 0);
  // The miner was off while another rig of the address worked for the other service.
  const boot = 'b0'.repeat(8);
  ledger.tell(toldName(boot, 'pplns'), 1_000n);
  for (let slice = 11; slice < 17; slice++)
    ledger.receive({ service: 'solo', slice, boot, work: '1', open: '0' } as Receipt);
  for (let minute = 1; minute < 6; minute++) expect(ledger.close(16, minute * 60_000)).toEqual([]);
  for (let slice = 17; slice < 20; slice++)
    ledger.receive({ service: 'solo', slice, boot, work: '1', open: '0' } as Receipt);
  expect(ledger.close(19, 360_000)).toMatchObject([{ kind: 'job_service', told: 1_000n }]);
});

test('a pool that offers no receipts is reported once, and not accused', () => {
  const played = new Played(new PlayedPool());
  const warned: string[] = [];
  const watch = new BooksWatch(
    { address: 'miner', worker: 'rig', api: 'http://pool.example', expectedKey: undefined },
    {
      read: async () => ({}),
      alarm: (alarm) => void played.alarms.push(alarm),
      note: () => undefined,
      warn: (message) => void warned.push(message),
      nowMillis: () => 0,
      wallMillis: () => 0,
    },
  );
  for (let connection = 0; connection < 3; connection++) watch.offered(null);
  expect(warned).toEqual([expect.stringContaining('the pool offers no receipts')]);
  expect(played.alarms).toEqual([]);
});

test('the page’s miner shows what could not be checked and that there are no receipts, apart from what it found', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'setTimeout', 'performance', 'Date'] });
  vi.stubGlobal('fetch', async () => new Response('{}', { status: 503 }));
  onTestFinished(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  const options = { api: 'http://pool.example', pool: 'ws://pool.example', address: 'miner', worker: 'rig' };
  const page = new PageBooks({ ...options, storage: undefined, node: null }, () => undefined);
  onTestFinished(() => page.stop());
  page.of().offered(null);
  expect(page.figures).toMatchObject({ alarms: [], warnings: [expect.stringContaining('offers no receipts')] });
  page.of().offered({ key: new Uint8Array(1952).fill(1), api: '' });
  await vi.advanceTimersByTimeAsync(2 * 3_600_000);
  const { warnings } = page.figures;
  expect(warnings.some((text) => /CANNOT BE CHECKED .receipts, since .*: status 503/.test(text))).toBe(true);
  // The pool offers them now.
  expect(warnings.some((text) => text.includes('offers no receipts'))).toBe(false);
});
