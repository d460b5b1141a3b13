/** Luck and withholding out of the real tables: shares, blocks, targets by cut, and who is named to the operator. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UNKNOWN_FINDER } from '../../pool/books/intake.ts';
import type { JournalRecord } from '../../pool/journal-record.ts';
import { countSuspects, luckOf, suspects } from '../../pool/luck/luck-figures.ts';
import { LuckRound } from '../../pool/luck/luck-round.ts';
import { LINE } from '../../pool/luck/withholding.ts';
import { formatAddress } from '../../protocol/address.ts';
import { targetOfWork } from '../../protocol/target.ts';
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
/** The network is ten times as strong from here on. */
const JUMP = 600;
let lost: number | undefined;
const workAt = (height: number): bigint => (height < JUMP ? BLOCK_WORK : 10n * BLOCK_WORK);

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

/** A slice in which each account does a tenth of a block's work in each of its cuts, and the blocks of some. */
async function slice(number: number, names: readonly string[], found: readonly JournalRecord[] = []) {
  const first = number * SLICE_CUTS;
  await books.height(first);
  const cuts = Array.from({ length: SLICE_CUTS }, (_, i) => first + i);
  await books.take([...cuts.flatMap((cut) => names.map((name) => share(name, BLOCK_WORK / 10n, cut))), ...found]);
}

test('a slice is counted when the one after it is closed; what is expected follows the target of each cut', async () => {
  await slice(0, ['honest', 'thief'], [block('honest', 1)]);
  await books.height(SLICE_CUTS);
  await luckRound();
  expect(await own('honest')).toBeUndefined();
  await books.height(2 * SLICE_CUTS);
  await luckRound();
  expect(await own('honest')).toMatchObject({ service: 'pplns', found: 1 });
  expect((await own('honest'))?.expected).toBeCloseTo(0.4, 12);
  expect((await own('thief'))?.expected).toBeCloseTo(0.4, 12);
  expect(await own('thief')).toMatchObject({ found: 0 });
  // Counted once, however often it is asked.
  expect(await luckRound()).toBe(0);
  expect((await own('honest'))?.expected).toBeCloseTo(0.4, 12);
});

test('who keeps all blocks back is named at 12 expected ones, with its hashes; who finds its part is not', async () => {
  for (let number = 2; number < 29; number++)
    await slice(number, ['honest', 'thief'], number % 5 < 2 ? [block('honest', number * SLICE_CUTS)] : []);
  await books.height(30 * SLICE_CUTS);
  await luckRound();
  await luckRound();
  expect(await own('thief')).toMatchObject({ found: 0 });
  expect((await own('thief'))?.expected).toBeCloseTo(11.2, 9);
  expect(await named()).toEqual([]);
  await slice(30, ['honest', 'thief']);
  await slice(31, ['honest', 'thief']);
  await books.height(33 * SLICE_CUTS);
  await luckRound();
  expect(await named()).toEqual([addressOf('thief')]);
  const [suspect] = await suspects(books.sql);
  expect(suspect?.evidence).toBeGreaterThan(LINE);
  expect(suspect).toMatchObject({ found: 0, withheldWork: 12n * BLOCK_WORK });
  expect(await countSuspects(books.sql)).toBe(1);
  expect((await own('thief'))?.probability).toBeLessThan(1e-4);
  expect((await own('honest'))?.probability).toBeGreaterThan(0.5);
});

test('blocks that came late count before anybody is named', async () => {
  for (let number = 34; number < 62; number++) await slice(number, ['late']);
  await books.height(63 * SLICE_CUTS);
  await luckRound();
  await luckRound();
  expect(await own('late')).toMatchObject({ found: 0 });
  expect((await own('late'))?.expected).toBeCloseTo(11.2, 9);
  // All of its blocks were in a journal that is read now; their slices are counted already.
  await books.take(Array.from({ length: 8 }, (_, i) => block('late', (37 + i) * SLICE_CUTS)));
  for (let number = 63; number < 66; number++) await slice(number, ['late']);
  await books.height(67 * SLICE_CUTS);
  await luckRound();
  expect((await own('late'))?.expected).toBeCloseTo(12.4, 9);
  expect(await own('late')).toMatchObject({ found: 8 });
  expect(await named()).toEqual([addressOf('thief')]);
});

test('a block whose finder is not on record counts for all who worked in its slice', async () => {
  for (let number = 70; number < 101; number++)
    await slice(number, ['unsure'], number === 80 ? [block('pool', number * SLICE_CUTS, UNKNOWN_FINDER)] : []);
  await books.height(102 * SLICE_CUTS);
  for (let rounds = 0; (await luckRound()) > 0; rounds++) expect(rounds).toBeLessThan(10);
  expect((await own('unsure'))?.expected).toBeCloseTo(12.4, 9);
  expect(await own('unsure')).toMatchObject({ found: 0 });
  expect(await named()).toEqual([addressOf('thief')]);
});

test('after a jump of the network less is expected at once, and a cut that the node does not show expects nothing', async () => {
  const at = JUMP / SLICE_CUTS;
  await slice(at, ['newcomer']);
  await books.height((at + 2) * SLICE_CUTS);
  for (let rounds = 0; (await luckRound()) > 0; rounds++) expect(rounds).toBeLessThan(10);
  expect((await own('newcomer'))?.expected).toBeCloseTo(0.04, 12);
  // An anchor may have been drawn among 80 cuts: all of them must be known.
  lost = JUMP + 10;
  await slice(at + 2, ['newcomer']);
  await books.height((at + 4) * SLICE_CUTS);
  expect(await luckRound()).toBeGreaterThan(0);
  expect((await own('newcomer'))?.expected).toBeCloseTo(0.04 + 0.02, 12);
});
