/**
 * Pools that answer every question about receipts, and never with what could be compared: slices that seem not to close, receipts that are said not to be kept, a slice far ahead. And honest
 * ones that look like them: a miner that was away for longer than receipts are kept, and an API that fails once after that.
 */
import { expect, test } from 'vitest';
import { ALL, Played, PlayedPool, SLICE_MILLIS } from '../miner/played-pool.ts';

type Lies = NonNullable<ConstructorParameters<typeof PlayedPool>[0]>;
const SLICE_CUTS = 240;
const ROW = { slice_cuts: SLICE_CUTS, window_thousandths: 8000, fee_ppm: 0, from_slice: 0 };
const TERMS = { network: 'development', address: 'pool', terms: { pplns: [ROW], solo: [ROW] } };

/** No block was found: terms, height and records go on, and are in order. */
function poolOf(lies: Lies, height = (newest: number) => (newest + 1) * SLICE_CUTS + 5): PlayedPool {
  const lists = ({ pathname }: URL) => {
    if (pathname.endsWith('/terms')) return { ...TERMS, height: height(pool.newest) };
    if (pathname.endsWith('/blocks')) return { blocks: [] };
    return { slices: [{ slice: pool.newest, credits: null, total_work: '5' }] };
  };
  const pool: PlayedPool = new PlayedPool({ lists, ...lies });
  return pool;
}

async function mine(played: Played, slices: number, isPushed: boolean): Promise<void> {
  await played.watch.check();
  for (let i = 0; i < slices; i++) {
    for (let part = 0; part < 5; part++) {
      played.now += SLICE_MILLIS / 5;
      played.share(1_000n);
      await played.watch.check();
    }
    await played.slice(ALL, isPushed);
  }
}

const frozen = () => ({ kept_from: null, newest: null, through: 10, more: false, slices: [] });

test('receipts that the pool signed and whose slices its answers never come to', async () => {
  const played = new Played(poolOf({ booksPart: 50n, answers: frozen }));
  await mine(played, 14, true);
  expect(played.alarms).toMatchObject([{ kind: 'books_hidden', fields: { slice: 11, newest: 23 } }]);
});

test('no receipts at all, and answers as if no slice closed, or as if those to come were past', async () => {
  const ahead = () => ({ ...frozen(), newest: 1_900_000_000, through: 1_900_000_000 });
  for (const answers of [frozen, ahead]) {
    const played = new Played(poolOf({ booksPart: 50n, answers }));
    await mine(played, 24, false);
    expect(played.warnings.join()).toContain('CANNOT BE CHECKED receipts: the receipts that the pool shows end with');
    await mine(played, 72, false);
    expect(new Set(played.kinds())).toEqual(new Set(['receipts_ended']));
  }
});

test('a pool that never gave a receipt and whose slices are long is not accused before one closed', async () => {
  const none = () => ({ kept_from: null, newest: null, through: 0, more: false, slices: [] });
  const played = new Played(poolOf({ answers: none }, () => 5_000 * SLICE_CUTS + Math.floor(played.now / 60_000)));
  await mine(played, 18, false);
  expect([played.kinds(), played.warnings]).toEqual([[], []]);
});

test('without a node, and with a height of the pool that does not change either: reported', async () => {
  for (const height of [() => 2_645, () => undefined as never]) {
    const played = new Played(poolOf({ booksPart: 50n, answers: frozen }, height));
    await mine(played, 18, false);
    expect(played.warnings.join()).toMatch(/CANNOT BE CHECKED rewards: .*(stood still|does not say how far)/);
  }
});

test('a pool that says that it keeps receipts of slices to come alone: what was told is not forgotten', async () => {
  const pool = new PlayedPool({ signsPart: 95n, booksPart: 95n });
  const honest = pool.read;
  const read = async (url: string) => {
    const answer = (await honest(url)) as object;
    return url.includes('/receipts') ? { ...answer, newest: pool.newest, kept_from: 1_000_000_000 } : answer;
  };
  const played = new Played(Object.assign(pool, { read }));
  await mine(played, 8, true);
  expect(played.kinds()[0]).toBe('receipts_less');
});

test('one signed slice far ahead keeps no later one from being compared with the ledger', async () => {
  const pool = poolOf({});
  const played = new Played(pool);
  await mine(played, 1, true);
  const { newest } = pool;
  pool.newest = 1_899_999_999;
  pool.accept(1n, played.now);
  await played.slice(ALL);
  pool.newest = newest;
  pool.answers.pop();
  await mine(played, 2, true);
  const { signed } = played.watch.save() as { signed: { slice: number }[] };
  expect(signed.map(({ slice }) => slice)).toEqual([11, 1_900_000_000, 12, 13]);
});

/** An honest pool; the miner is switched off between a receipt and the comparison. */
async function switchedOff(slicesAway: number) {
  const pool = poolOf({});
  const played = new Played(pool);
  await mine(played, 3, true);
  played.now += SLICE_MILLIS;
  played.share(1_000n);
  for (const receipt of pool.close(ALL, played.now)) played.watch.received(receipt);
  const saved = played.watch.save();
  pool.restart(77);
  for (let i = 0; i < slicesAway; i++) {
    played.now += SLICE_MILLIS;
    pool.accept(1n, played.now);
    pool.close(ALL, played.now);
  }
  // Receipts are kept for a day.
  pool.answers.splice(0, pool.answers.length - 144);
  played.restart(saved);
  return { pool, played };
}

test('a miner that was away for longer than receipts are kept does not accuse the pool of the last one', async () => {
  const { played } = await switchedOff(288);
  await mine(played, 3, true);
  expect(played.kinds()).toEqual([]);
  // One that was away for less does, where the slice is not shown.
  const { pool, played: other } = await switchedOff(72);
  pool.answers.splice(0, pool.answers.length - 12);
  for (let round = 0; round < 6; round++) await other.watch.check();
  expect(other.kinds()).toEqual(['books_hidden']);
});

test('a miner that was away for hours, and an API that fails once when it is back', async () => {
  const { pool, played } = await switchedOff(24);
  const honest = pool.read;
  let fails = 0;
  Object.assign(pool, { read: async () => Promise.reject(new Error(`status 503, ${++fails}`)) });
  played.restart(played.watch.save());
  played.share(1_000n);
  for (const receipt of pool.close(ALL, played.now)) played.watch.received(receipt);
  await played.watch.check().catch(() => undefined);
  expect(fails).toBeGreaterThan(0);
  Object.assign(pool, { read: honest });
  played.restart(played.watch.save());
  await mine(played, 3, true);
  expect(played.kinds()).toEqual([]);
});

test('heights that creep: the pool’s own jobs name cuts that its books never come to', async () => {
  const START = 2_640;
  /** 48 cuts an hour pass for books that go on. The page of slices agrees with them. */
  const play = async (hours: number, jobs: (hour: number) => number, books: (hour: number) => number) => {
    const height = () => START + books(played.now / 3_600_000);
    const lists = ({ pathname }: URL) => {
      if (pathname.endsWith('/terms')) return { ...TERMS, height: height() };
      if (pathname.endsWith('/blocks')) return { blocks: [] };
      return { slices: [{ slice: Math.floor(height() / SLICE_CUTS) - 1, credits: null, total_work: '5' }] };
    };
    const played: Played = new Played(poolOf({ lists, answers: frozen }));
    for (let hour = 0; hour < hours; hour++) {
      played.now += 3_600_000;
      played.watch.worked(START + jobs(hour));
      await played.watch.check();
    }
    return played;
  };
  const creep = (hour: number) => Math.floor(hour * 48);
  const fraud = await play(20, (hour) => hour * 1_440, creep);
  expect(fraud.warnings.join()).toContain('cuts behind its own jobs');
  expect(fraud.kinds()).toEqual(['lists_hidden']);
  // A chain that is as slow as the books say, and books that were away for nine hours.
  const slow = await play(20, creep, creep);
  const away = await play(
    20,
    (hour) => hour * 1_440,
    (hour) => (hour < 9 ? 0 : Math.floor(hour * 1_440)),
  );
  expect([slow.warnings, slow.kinds(), away.kinds()]).toEqual([[], [], []]);
});
