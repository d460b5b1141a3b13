/** The public audit over books in memory: those of an honest pool hold, and of a liar each answer that is wrong is named. */
import { expect, test } from 'vitest';
import { addressOf, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { rechained } from '../protocol/books-liar.ts';
import { HEIGHT, publishedBooks } from './published-books.ts';

const { books, audit, nodeAt } = publishedBooks();
type Lie = NonNullable<Parameters<typeof audit>[0]>;

test('the books of an honest pool hold, to the atom', async () => {
  const report = await audit();
  expect(report.findings).toEqual([]);
  expect(report).toMatchObject({ verdict: 'holds', lists: { proven: 3, unchecked: 0, false: 0 }, not_checked: [] });
  expect(report.money).toMatchObject({ withdrawn: '0', network_fees: '100' });
});

/** Each finding, as `what: computed`. */
const found = async (...of: Parameters<typeof audit>): Promise<string[]> =>
  (await audit(...of)).findings.map(({ what, computed }) => `${what}: ${computed}`);

test('a pool that names another address in between is false, and its lists are judged by the first one', async () => {
  let isLists = false;
  const lie: Lie = (path, answer) => {
    isLists ||= path.startsWith('proofs/');
    return isLists && path === 'terms' ? { ...(answer as object), address: addressOf(5) } : answer;
  };
  const report = await audit(lie);
  expect(new Set(report.findings.map(({ what }) => what))).toEqual(new Set(['the pool’s address']));
  expect(report.lists).toEqual({ proven: 3, unchecked: 0, false: 0 });
});

test('a pool that first promises the lowest fee of a window, and then is silent about it, has its lists judged by the promise', async () => {
  const [low, high] = [10_000, 500_000];
  const raised = publishedBooks({ found: [5], feePpm: high, earlierFee: { until: 5, ppm: low } });
  const terms = (answer: { terms: { pplns: object[] } }, rest: object) => {
    const [first] = answer.terms.pplns;
    const list = [first, { ...first, from_slice: 5, fee_ppm: high }];
    return { ...answer, terms: { pplns: list, solo: list }, ...rest };
  };
  let times = 0;
  const withFee = (rest: () => object): Lie => {
    return (path, answer) => (path === 'terms' ? terms(answer, rest()) : answer);
  };
  expect((await raised.audit(withFee(() => ({})))).lists).toMatchObject({ proven: 1 });
  const promised = withFee(() => (times++ === 0 ? { window_fee_from: 3 } : {}));
  expect((await raised.audit(promised)).lists).toMatchObject({ proven: 0, false: 1 });
});

test('a total that is not the sum of its leaves is named, also where all records after it are made to fit', async () => {
  const records = rechained(
    books.records.map((record) => (record.slice === 7 ? { ...record, total_work: `${record.total_work}0` } : record)),
  );
  const lie: Lie = (path, answer: { slices: { slice: number; credits: unknown }[] }) =>
    path.startsWith('slices/pplns?')
      ? {
          slices: answer.slices.map(({ slice, credits }) => ({
            ...records.find((record) => record.slice === slice),
            credits,
          })),
        }
      : answer;
  const total = books.records.find(({ slice }) => slice === 7)?.total_work;
  expect(await found(lie)).toContain(`slice 7 of pplns: total: ${total}`);
});

test('a slice that is closed before its last cut is false by the ledger, and unchecked without one', async () => {
  const closes = Math.floor(HEIGHT / SLICE_CUTS) * SLICE_CUTS;
  const early: Lie = (path, answer) => (path === 'terms' ? { ...(answer as object), height: closes - 1 } : answer);
  const what = `slice ${closes / SLICE_CUTS - 1} of pplns`;
  expect(await found(early, nodeAt(closes - 1))).toContain(`${what}: not before cut ${closes}`);
  // The terms may be older than the records: the ledger has reached the cut.
  expect(await found(early, nodeAt(closes))).toEqual([]);
  const alone = await audit(early, null);
  expect(alone.findings).toEqual([]);
  expect(alone.not_checked).toContain(`${what}: closed before the cut that the pool names was reached`);
});
