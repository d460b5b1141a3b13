/** The rewards of every slice must be in credit lists in time: a pool that hides one is told of, and one that is late or does not answer is not accused. */
import { expect, test } from 'vitest';
import { ListWatch } from '../../miner/books/list-watch.ts';
import { SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { honest, type Lie, own, SLICE } from '../protocol/books-liar.ts';
import { ADDRESS, DUE_HEIGHT, truth, twice, watched } from './watched-lists.ts';

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
  // What it holds is no cause for alarm, nor a pool that nobody has worked for, nor a node that is behind.
  const held = taken.map((each) => ({ ...each, credited_with: null }));
  expect(
    await run((answers) => {
      unlisted(answers);
      answers.set(`slices/pplns/${SLICE}/blocks`, { blocks: held });
    }),
  ).toEqual([]);
  const idle = honest.records.map((record) => ({ ...record, total_work: '0' }));
  expect(
    await run((answers) => {
      unlisted(answers);
      answers.set(`slices/pplns?limit=50&cursor=${SLICE + 1}-0`, slices(idle));
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
  next.watch.restore(JSON.parse(JSON.stringify(watch.save())));
  for (const [path, answer] of answers) next.answers.set(path, answer);
  next.watch.works('pplns');
  await twice(() => next.watch.round());
  expect(next.alarms).toContain(`rewards_hidden pplns/${SLICE}`);
  // It came.
  answers.set(page, { slices: [{ slice: SLICE + 1, credits: {} }] });
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
    ...{ node: null, alarm: () => undefined, note: () => undefined, nowMillis: () => 0 },
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
    ...{ note: () => undefined, nowMillis: () => minute * 60_000 },
    alarm: (kind, what) => void alarms.push(`${kind} ${what}`),
    pool: async (path) => {
      if (path === 'terms') return { address: 'x', height, terms: { pplns: [first], solo: [first] } };
      if (isFailing) throw new Error('status 500');
      looked.add(path);
      return path.endsWith('blocks') ? NO_BLOCKS : { slices: [] };
    },
    node: {
      addressChanges: async ({ after_height: after, limit }: { after_height: number; limit: number }) => ({
        ...{ indexed_height: height },
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
