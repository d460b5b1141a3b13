/** The rewards of every slice must be in credit lists in time: a pool that hides one is reported, and one that is late or does not answer is not accused. */
import { expect, test } from 'vitest';
import { ListWatch } from '../../miner/books/list-watch.ts';
import { SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { honest, type Lie, own, SLICE } from '../protocol/books-liar.ts';
import {
  ADDRESS,
  DUE_HEIGHT,
  EPOCH_MILLIS,
  proofWith,
  recordsThrough,
  truth,
  twice,
  watched,
} from './watched-lists.ts';

test('rewards that the ledger paid and that no list has in time', async () => {
  // What every pool has had to list by the height of the node.
  const paid = [...(truth.evidence.rewards ?? [])];
  const rewards = new Map(
    paid.map(([transaction, { amount }]) => [transaction, { amount, height: SLICE * SLICE_CUTS + 97 }]),
  );
  const lie: Lie = { ...truth, evidence: { ...truth.evidence, rewards } };
  const run = async (change: (answers: Map<string, unknown>) => void, options: object = {}) => {
    const { watch, alarms, answers } = watched(lie, { height: DUE_HEIGHT, ...options });
    change(answers);
    watch.works('pplns');
    await twice(() => watch.round());
    return alarms;
  };
  const slices = (records: readonly object[]) => ({ slices: records.map((each) => ({ ...each, credits: null })) });
  expect(await run(() => undefined)).toEqual([]);
  // No list at all, for anybody.
  const unlisted = (answers: Map<string, unknown>) => {
    answers.set('slices/pplns?limit=50', slices(honest.records.toReversed()));
    answers.set(`slices/pplns?limit=1&cursor=${SLICE + 1}-0`, slices([own(honest)]));
  };
  expect(await run(unlisted)).toEqual([`rewards_hidden pplns/${SLICE}`]);
  // Without a node the pool's own word convicts it.
  expect(await run(unlisted, { node: false })).toEqual([`rewards_hidden pplns/${SLICE}`]);
  const hidden = (answers: Map<string, unknown>) => {
    unlisted(answers);
    for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${SLICE}/blocks`, { blocks: [] });
  };
  expect(await run(hidden)).toEqual([`rewards_hidden pplns/${SLICE}`]);
  expect(await run(hidden, { node: false })).toEqual([]);
  // All of the slice called solo.
  const taken = truth.proof.blocks.map(({ block_id }) => ({ block_id, credited_with: SLICE }));
  const others = (truth.evidence.otherBlocks ?? []).map((block_id) => ({ block_id, credited_with: SLICE }));
  expect(
    await run((answers) => {
      hidden(answers);
      answers.set(`slices/solo/${SLICE}/blocks`, { blocks: [...others, ...taken] });
    }),
  ).toEqual([`rewards_hidden pplns/${SLICE}`]);
  // What it holds is no cause for alarm for some hours, nor a pool that nobody has worked for, nor a node that is behind.
  const held = taken.map((each) => ({ ...each, credited_with: null }));
  expect(
    await run((answers) => {
      unlisted(answers);
      answers.set(`slices/pplns/${SLICE}/blocks`, { blocks: held });
    }),
  ).toEqual([]);
  const idle = honest.records.toReversed().map((record) => ({ ...record, total_work: '0' }));
  expect(
    await run((answers) => {
      unlisted(answers);
      answers.set(`slices/pplns?limit=50&cursor=${SLICE + 1}-0`, slices(idle.filter(({ slice }) => slice <= SLICE)));
    }),
  ).toEqual([]);
  const before = (answers: Map<string, unknown>) => {
    unlisted(answers);
    for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${SLICE - 1}/blocks`, { blocks: [] });
  };
  expect(await run(before, { height: DUE_HEIGHT - 1 })).toEqual([]);
});

const NO_BLOCKS = { blocks: [] };

test('books that are behind the ledger are not accused of what they have not taken in; far behind they fail', async () => {
  const { watch, alarms, answers, heights } = watched(truth);
  for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${SLICE}/blocks`, NO_BLOCKS);
  for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${SLICE - 1}/blocks`, NO_BLOCKS);
  answers.set('slices/pplns?limit=50', { slices: [] });
  heights.pool = DUE_HEIGHT - 1;
  watch.works('pplns');
  await twice(() => watch.round());
  expect([alarms, watch.isSuspicious]).toEqual([[], false]);
  heights.node = DUE_HEIGHT + 1_440;
  await expect(watch.round()).rejects.toThrow('1441 cuts behind');
  expect(alarms).toEqual([]);
});

test('blocks that the pool says are in a list that cannot be, or in a later one that never comes', async () => {
  const ids = truth.proof.blocks.map(({ block_id }) => block_id);
  const blocks = `slices/pplns/${SLICE}/blocks`;
  const said = (credited_with: unknown) => ({ blocks: ids.map((block_id) => ({ block_id, credited_with })) });
  for (const list of [999_999_999, undefined, -1, SLICE - 1, 0.5, `${SLICE}`]) {
    const { watch, alarms, answers } = watched(truth, { node: false });
    answers.set(blocks, said(list));
    watch.works('pplns');
    await twice(() => watch.round());
    expect(alarms, String(list)).toContain(`rewards_hidden pplns/${SLICE}`);
  }
  const { watch, alarms, answers, heights } = watched(truth, { node: false });
  const page = `slices/pplns?limit=1&cursor=${SLICE + 2}-0`;
  answers.set(blocks, said(SLICE + 1));
  answers.set(page, { slices: [{ slice: SLICE + 1, credits: null }] });
  for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${SLICE + 1}/blocks`, NO_BLOCKS);
  watch.works('pplns');
  await twice(() => watch.round());
  expect(alarms.join()).not.toMatch(/rewards/);
  // What is awaited is kept over a restart.
  const next = watched(truth, { node: false, height: DUE_HEIGHT + SLICE_CUTS });
  next.watch.known.restore(JSON.parse(JSON.stringify(watch.known.save())));
  for (const [path, answer] of answers) next.answers.set(path, answer);
  next.watch.works('pplns');
  await twice(() => next.watch.round());
  expect(next.alarms).toContain(`rewards_hidden pplns/${SLICE}`);
  // It came.
  answers.set(page, { slices: [{ slice: SLICE + 1, credits: {} }] });
  answers.set(`proofs/pplns/${SLICE + 1}?address=${ADDRESS}`, proofWith(SLICE + 1, ids));
  heights.pool = DUE_HEIGHT + SLICE_CUTS;
  await twice(() => watch.round());
  expect(alarms.join()).not.toMatch(/rewards/);
});

test('lists that the blocks of a slice cannot be in are not asked for', async () => {
  let asked = 0;
  const terms = { ...truth.evidence.terms, height: 1_000_000 };
  const due = Math.floor((terms.height - 208) / SLICE_CUTS) - 1;
  const many = Array.from({ length: 20_000 }, (_, i) => ({
    block_id: i.toString(16).padStart(96, '0'),
    credited_with: due - i,
  }));
  const watch = new ListWatch(ADDRESS, {
    pool: async (path) => {
      asked++;
      if (path === 'terms') return terms;
      if (path.endsWith('blocks')) return { blocks: many };
      return { slices: [{ slice: Number.parseInt(path.split('cursor=')[1] ?? '1', 10) - 1, credits: {} }] };
    },
    node: null,
    alarm: () => undefined,
    note: () => undefined,
    wallMillis: Date.now,
    nowMillis: () => 0,
  });
  watch.works('pplns');
  await watch.round();
  expect(asked).toBeLessThan(20);
});

test('a pool that gives this miner no proof of a list fails until it does, and later lists are judged meanwhile', async () => {
  const { watch, alarms, answers } = watched(truth);
  const proof = `proofs/pplns/${SLICE}?address=${ADDRESS}`;
  answers.set(proof, new Error('status 500'));
  watch.works('pplns');
  for (let round = 0; round < 10; round++) await expect(watch.round()).rejects.toThrow('status 500');
  // The list is not on the first page any more.
  answers.set('slices/pplns?limit=50', { slices: [] });
  await expect(watch.round()).rejects.toThrow('status 500');
  answers.delete(proof);
  await watch.round();
  expect([watch.proven, watch.unchecked, alarms]).toEqual([1, 0, []]);
});

test('no slice is passed over, and one that looks wrong is looked at until that is settled', async () => {
  const first = { from_slice: 0, slice_cuts: 240, window_thousandths: 1, fee_ppm: 0 };
  const [alarms, looked]: [string[], Set<string>] = [[], new Set()];
  let [minute, height, isFailing, hidden] = [0, 10_000, false, -1];
  const watch = new ListWatch(ADDRESS, {
    note: () => undefined,
    wallMillis: Date.now,
    nowMillis: () => minute * 60_000,
    alarm: (kind, what) => void alarms.push(`${kind} ${what}`),
    pool: async (path) => {
      if (path === 'terms') return { address: 'x', height, terms: { pplns: [first], solo: [first] } };
      if (isFailing) throw new Error('status 500');
      looked.add(path);
      return path.endsWith('blocks') ? NO_BLOCKS : { slices: [] };
    },
    node: {
      addressChanges: async ({ after_height: after, limit }: { after_height: number; limit: number }) => ({
        indexed_height: height,
        changes:
          limit > 1 && after === hidden * 240 + 95
            ? [
                {
                  kind: 'received',
                  source: 'work_reward',
                  transaction_id: 'ff',
                  amount: '5',
                  finalized_height: after + 1,
                },
              ]
            : [],
      }),
    } as never,
  });
  const round = async () => {
    minute++;
    await watch.round();
  };
  const due = () => Math.floor((height - 208) / 240) - 1;
  watch.works('pplns');
  await round();
  const start = due();
  height += 240 * 12;
  hidden = start + 3;
  await round();
  expect([watch.isSuspicious, alarms]).toEqual([true, []]);
  // Another slice is due by the time that the pool answers again.
  isFailing = true;
  height += 240;
  await expect(round()).rejects.toThrow('status 500');
  isFailing = false;
  for (let i = 0; i < 4; i++) await round();
  expect([watch.isSuspicious, alarms]).toEqual([false, [`rewards_hidden pplns/${hidden}`]]);
  for (let slice = start; slice <= due(); slice++) expect(looked).toContain(`slices/pplns/${slice}/blocks`);
});

const HELD_CUTS = 5_760;
/** The list of a slice is due, and four hours have passed since all its rewards were paid. */
const LONG_DUE = DUE_HEIGHT + Math.ceil(HELD_CUTS / SLICE_CUTS) * SLICE_CUTS;

test('rewards that the pool holds, or puts off from list to list, for hours: told under a name of its own', async () => {
  const ids = truth.proof.blocks.map(({ block_id }) => block_id);
  const paid = [...(truth.evidence.rewards ?? [])].map(
    ([transaction, { amount }]) => [transaction, { amount, height: SLICE * SLICE_CUTS + 97 }] as const,
  );
  const lie: Lie = { ...truth, evidence: { ...truth.evidence, rewards: new Map(paid) } };
  for (const isNode of [true, false]) {
    const { watch, alarms, answers, heights } = watched(lie, { node: isNode, isExact: true });
    const blocks = `slices/pplns/${SLICE}/blocks`;
    const say = (list: number | null) =>
      answers.set(blocks, { blocks: ids.map((block_id) => ({ block_id, credited_with: list })) });
    const to = (height: number) => Object.assign(heights, { node: height, pool: height });
    watch.works('pplns');
    say(null);
    await twice(() => watch.round());
    expect(alarms).toEqual([]);
    for (let slice = SLICE + 1; slice <= Math.floor(LONG_DUE / SLICE_CUTS); slice++) {
      for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${slice}/blocks`, NO_BLOCKS);
      answers.set(`slices/pplns?limit=1&cursor=${slice + 1}-0`, { slices: [{ slice, credits: {} }] });
    }
    // Each time that somebody looks, it is the list of the slice that is open.
    for (let height = DUE_HEIGHT, looks = 0; height < LONG_DUE; height += 5 * SLICE_CUTS) {
      to(height);
      say(looks++ % 2 === 0 ? null : Math.floor(height / SLICE_CUTS));
      await twice(() => watch.round());
    }
    expect(alarms).toEqual([]);
    to(LONG_DUE);
    say(null);
    await twice(() => watch.round());
    expect(alarms, `node ${isNode}`).toEqual([`rewards_withheld pplns/${SLICE}`]);
    await twice(() => watch.round());
    expect(alarms).toHaveLength(1);
  }
});

test('a pool that holds all rewards of all slices is reported, however many slices there are', async () => {
  const first = { from_slice: 0, slice_cuts: 6, window_thousandths: 1, fee_ppm: 0 };
  const alarms: string[] = [];
  let [minute, height] = [0, 10_000];
  const options = {
    note: () => undefined,
    nowMillis: () => minute * 60_000,
    node: null,
    alarm: (kind: string, what: string) => void alarms.push(`${kind} ${what}`),
    pool: async (path: string) => {
      if (path === 'terms') return { address: 'x', height, terms: { pplns: [first], solo: [first] } };
      const slice = Number(path.split('/')[2]);
      const held = { block_id: slice.toString(16).padStart(96, '0'), credited_with: null };
      return path.endsWith('blocks') ? { blocks: path.includes('pplns') ? [held] : [] } : { slices: [] };
    },
  };
  let watch = new ListWatch(ADDRESS, options as never);
  for (; alarms.length === 0 && height < 20_000; height += 24) {
    minute++;
    watch.works('pplns');
    await watch.round();
    const saved = JSON.parse(JSON.stringify(watch.known.save()));
    watch = new ListWatch(ADDRESS, options as never);
    watch.known.restore(saved);
    watch.works('pplns');
    await watch.round();
    minute++;
    await watch.round();
  }
  expect(alarms[0]).toMatch(/^rewards_withheld pplns/);
  expect(height).toBeLessThan(10_000 + HELD_CUTS + 1_000);
});

test('a node whose newest cut is old is behind, or the clock is ahead: nothing is held against the pool for it, and it is reported once', async () => {
  const ids = truth.proof.blocks.map(({ block_id }) => block_id);
  const { watch, alarms, notes, answers, heights, head } = watched(truth, { nowMillis: 36_000_000 });
  head.millis = EPOCH_MILLIS;
  heights.pool = DUE_HEIGHT + 10_000;
  answers.set(`slices/pplns/${SLICE}/blocks`, {
    blocks: ids.map((block_id) => ({ block_id, credited_with: Math.floor((heights.pool as number) / SLICE_CUTS) })),
  });
  watch.works('pplns');
  await twice(() => watch.round());
  expect(alarms).toEqual([]);
  expect(notes.filter((note) => note === 'rewards are not looked for')).toHaveLength(1);
  expect(watch.lapse).toMatch(/behind the pool, or the clock/);
  // A pool whose height is the node's own says nothing that could be due to the clock.
  heights.pool = DUE_HEIGHT;
  await twice(() => watch.round());
  expect(watch.lapse).toBeUndefined();
  expect(alarms).toContain(`rewards_hidden pplns/${SLICE}`);
});

test('a list that was named first and an earlier one that is not there, named later', async () => {
  const ids = truth.proof.blocks.map(({ block_id }) => block_id);
  const { watch, alarms, answers, heights } = watched(truth, { node: false });
  const say = (list: number) =>
    answers.set(`slices/pplns/${SLICE}/blocks`, { blocks: ids.map((block_id) => ({ block_id, credited_with: list })) });
  for (let slice = SLICE + 1; slice < SLICE + 4; slice++)
    for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${slice}/blocks`, NO_BLOCKS);
  answers.set(`slices/pplns?limit=1&cursor=${SLICE + 2}-0`, { slices: [{ slice: SLICE + 1, credits: null }] });
  say(SLICE + 3);
  watch.works('pplns');
  await twice(() => watch.round());
  heights.pool = DUE_HEIGHT + 3 * SLICE_CUTS;
  say(SLICE + 1);
  await twice(() => watch.round());
  expect(alarms).toContain(`rewards_hidden pplns/${SLICE}`);
});

test('blocks in more lists than are asked for at a time: the others have their turn, and one that is not there is found', async () => {
  const lists = Array.from({ length: 12 }, (_, i) => SLICE + i);
  const { watch, alarms, answers } = watched(truth, { node: false, height: DUE_HEIGHT + 20 * SLICE_CUTS });
  const due = SLICE + 20;
  const asked: string[] = [];
  const missing = SLICE + 11;
  const record = (slice: number) => ({ slices: [{ slice, credits: slice === missing ? null : {}, total_work: '1' }] });
  for (const list of lists) answers.set(`slices/pplns?limit=1&cursor=${list + 1}-0`, record(list));
  for (let slice = SLICE; slice <= due; slice++)
    for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${slice}/blocks`, NO_BLOCKS);
  const named = lists.map((list) => ({ block_id: list.toString(16).padStart(96, '0'), credited_with: list }));
  for (const { block_id: block, credited_with: list } of named) {
    answers.set(`proofs/pplns/${list}?address=${ADDRESS}`, proofWith(list, [block]));
    for (const limit of [50, 200])
      answers.set(`slices/pplns?limit=${limit}&cursor=${list + 1}-0`, recordsThrough(list));
  }
  answers.set(`slices/pplns/${SLICE}/blocks`, { blocks: named });
  const get = answers.get.bind(answers);
  answers.get = (path: string) => {
    if (path.includes('limit=1&')) asked.push(path);
    return get(path);
  };
  // It was looked at up to the slice before.
  watch.known.restore({ looked: [], judged: [], blocks: [], due: [['pplns', SLICE - 1]], again: [] });
  watch.works('pplns');
  await watch.round();
  expect([asked.length, alarms]).toEqual([12, []]);
  await twice(() => watch.round());
  expect(alarms).toEqual([`rewards_hidden pplns/${SLICE}`]);
  // Those of the first look are not asked for again.
  expect(asked.filter((path) => path.includes(`cursor=${SLICE + 1}-0`))).toHaveLength(1);
});

test('dust in one slice, sent to the pool’s address: it is reported, and the slices after it are looked at', async () => {
  const first = { from_slice: 0, slice_cuts: 240, window_thousandths: 1, fee_ppm: 0 };
  const alarms: string[] = [];
  let [millis, height] = [0, 10 * 240 + 208];
  const dusty = 10;
  const change = (at: number, source: string) => ({
    kind: 'received',
    source,
    transaction_id: 'ff',
    amount: '1',
    finalized_height: at,
  });
  const watch = new ListWatch(ADDRESS, {
    note: () => undefined,
    nowMillis: () => (millis += 60_000),
    wallMillis: Date.now,
    alarm: (kind, what) => void alarms.push(`${kind} ${what}`),
    pool: async (path) => {
      if (path === 'terms') return { address: 'x', height, terms: { pplns: [first], solo: [first] } };
      return path.endsWith('blocks') ? NO_BLOCKS : { slices: [] };
    },
    node: {
      addressChanges: async ({ after_height: after }: { after_height: number }) => {
        const slice = (after + 1 - 96) / 240;
        if (slice === dusty)
          return { changes: [change(after + 1, 'regular')], indexed_height: height, next_cursor: 'more' };
        return { changes: slice === dusty + 1 ? [change(after + 1, 'work_reward')] : [], indexed_height: height };
      },
    } as never,
  });
  watch.works('pplns');
  await watch.round();
  height += 2 * 240;
  for (let round = 0; round < 4; round++) await watch.round();
  expect(alarms).toEqual([`rewards_crowded pplns/${dusty}`, `rewards_hidden pplns/${dusty + 1}`]);
});
