/** Luck and withholding out of the real tables: shares, blocks, targets by cut, and who is named to the operator. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UNKNOWN_FINDER } from '../../pool/books/intake.ts';
import type { JournalRecord } from '../../pool/journal/journal-record.ts';
import { countSuspects, luckOf, suspects } from '../../pool/luck/luck-figures.ts';
import { LuckRound } from '../../pool/luck/luck-round.ts';
import { LINE } from '../../pool/luck/withholding.ts';
import { formatAddress } from '../../protocol/address.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

let books: BooksBed;
beforeAll(async () => {
  books = await openBooks();
  await books.height(0);
});
afterAll(() => books.close());

const AT = 1_767_225_600_000;
const BLOCK_WORK = 1_000n;
/** The network is ten times as strong between these cuts. */
const [RISE, FALL] = [320, 400];
let lost: number | undefined;
const workAt = (height: number): bigint => (height < RISE || height >= FALL ? BLOCK_WORK : 10n * BLOCK_WORK);

const share = (name: string, work: bigint, cut: number): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: account(name),
  worker: 'w',
  work,
  atMillis: AT,
  identity: freshIdentity(cut),
});
let blocks = 0;
const block = (name: string, anchorHeight: number, worker = 'w'): JournalRecord => ({
  kind: 'block',
  service: 'pplns',
  account: account(name),
  worker,
  blockId: pattern(`luck ${blocks++}`, 48),
  anchorHeight,
  target: targetOfWork(workAt(anchorHeight)),
  extranonce: pattern('extranonce', 20),
  atMillis: AT,
});

const luckRound = () =>
  new LuckRound(
    { services: [0, 1], sliceCuts: SLICE_CUTS },
    {
      sql: books.sql,
      run: books.fenced,
      chain: {
        async blockWorks(first, last) {
          const works = new Map<number, bigint>();
          for (let height = first; height <= last; height++) if (height !== lost) works.set(height, workAt(height));
          return works;
        },
      },
    },
  ).round();

const idOf = async (name: string) =>
  ((await books.sql<{ id: number }[]>`select id from accounts where payload = ${Buffer.from(account(name))}`)[0]?.id ??
    -1) as number;
const own = async (name: string) => (await luckOf(books.sql, await idOf(name)))[0];
const named = async () => (await suspects(books.sql)).map(({ address }) => address);
const addressOf = (name: string) => formatAddress(account(name), 'development');

/** Three tenths of a block's work of each account in each cut of a slice, 1.2 blocks, and the blocks of some. */
async function slice(number: number, names: readonly string[], found: readonly JournalRecord[] = []) {
  const first = number * SLICE_CUTS;
  await books.height(first);
  const cuts = Array.from({ length: SLICE_CUTS }, (_, i) => first + i);
  await books.take([
    ...cuts.flatMap((cut) => names.map((name) => share(name, (3n * BLOCK_WORK) / 10n, cut))),
    ...found,
  ]);
}

/** Counts what is due when a slice opens: through the last but two. */
async function countedAt(number: number) {
  await books.height(number * SLICE_CUTS);
  for (let rounds = 0; (await luckRound()) > 0; rounds++) expect(rounds).toBeLessThan(10);
}

test('a slice is counted once, when the one after it is closed', async () => {
  await slice(0, ['honest', 'thief'], [block('honest', 1)]);
  await countedAt(1);
  expect(await own('honest')).toBeUndefined();
  await countedAt(2);
  expect(await own('honest')).toMatchObject({ service: 'pplns', found: 1 });
  expect((await own('honest'))?.expected).toBeCloseTo(1.2, 12);
  expect((await own('thief'))?.expected).toBeCloseTo(1.2, 12);
  expect(await own('thief')).toMatchObject({ found: 0 });
  await luckRound();
  expect((await own('honest'))?.expected).toBeCloseTo(1.2, 12);
});

test('who keeps all blocks back is named at 12 expected ones, with its hashes; who finds its part is not', async () => {
  for (let number = 2; number < 10; number++)
    await slice(number, ['honest', 'thief'], [block('honest', number * SLICE_CUTS)]);
  await countedAt(11);
  expect(await own('thief')).toMatchObject({ found: 0 });
  expect((await own('thief'))?.expected).toBeCloseTo(10.8, 9);
  expect(await named()).toEqual([]);
  await slice(11, ['honest', 'thief']);
  await countedAt(13);
  expect(await named()).toEqual([addressOf('thief')]);
  const [suspect] = await suspects(books.sql);
  expect(suspect?.evidence).toBeGreaterThan(LINE);
  expect(suspect).toMatchObject({ found: 0, withheldWork: 12n * BLOCK_WORK });
  expect(await countSuspects(books.sql)).toBe(1);
  expect((await own('thief'))?.probability).toBeLessThan(1e-4);
  expect((await own('honest'))?.probability).toBeGreaterThan(0.4);
});

test('blocks that came late count before anybody is named', async () => {
  for (let number = 14; number < 23; number++) await slice(number, ['late']);
  await countedAt(24);
  expect(await own('late')).toMatchObject({ found: 0 });
  expect((await own('late'))?.expected).toBeCloseTo(10.8, 9);
  // All of its blocks were in a journal that is read now; their slices are counted already.
  await books.take(Array.from({ length: 8 }, (_, i) => block('late', (14 + i) * SLICE_CUTS)));
  await slice(24, ['late']);
  await slice(25, ['late']);
  await countedAt(27);
  expect((await own('late'))?.expected).toBeCloseTo(13.2, 9);
  expect(await own('late')).toMatchObject({ found: 8 });
  expect(await named()).not.toContain(addressOf('late'));
});

test('a block whose finder is not on record counts for all who worked in its slice', async () => {
  for (let number = 28; number < 38; number++)
    await slice(number, ['unsure'], number === 30 ? [block('pool', number * SLICE_CUTS, UNKNOWN_FINDER)] : []);
  await countedAt(39);
  expect((await own('unsure'))?.expected).toBeCloseTo(12, 9);
  expect(await own('unsure')).toMatchObject({ found: 0 });
  expect(await named()).not.toContain(addressOf('unsure'));
});

test('after a rise of the network less is expected at once, and a cut that the node does not show expects nothing', async () => {
  const at = RISE / SLICE_CUTS;
  await slice(at, ['newcomer']);
  await countedAt(at + 2);
  expect((await own('newcomer'))?.expected).toBeCloseTo(0.12, 12);
  // An anchor may have been drawn among 80 cuts: all of them must be known.
  lost = RISE + 10;
  await slice(at + 2, ['newcomer']);
  await countedAt(at + 4);
  expect((await own('newcomer'))?.expected).toBeCloseTo(0.12 + 0.06, 12);
  lost = undefined;
});

test('after a fall of the network nobody is named for jobs that may have been built on older cuts', async () => {
  const at = FALL / SLICE_CUTS;
  for (let number = at; number < at + 11; number++) await slice(number, ['stayed']);
  await countedAt(at + 12);
  expect((await own('stayed'))?.expected).toBeCloseTo(13.2, 9);
  expect(await named()).not.toContain(addressOf('stayed'));
});
