/**
 * A pool that answers with documents that leave out what they were asked for: pages without the slice, or that end early. That is no answer: the list is neither called
 * unchecked nor passed over. And what a miner is shown first, and the list that its own block is in, are read with the same care.
 */
import { expect, test } from 'vitest';
import { UnjudgedLists } from '../../miner/books/unchecked-time.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { feeOf, leavesOf } from '../../protocol/books/pplns.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import { addressOf, keyOf, membership, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { ADDRESS, DUE_HEIGHT, EPOCH_MILLIS, truth, watched } from '../miner/watched-lists.ts';
import { LEDGER_LIES } from '../protocol/books-ledger-lies.ts';
import { before, honest, type Lie, MINERS, own, proofOver, renamed, SLICE, VICTIM } from '../protocol/books-liar.ts';

type Page = { readonly slices: readonly object[] };
type Watched = ReturnType<typeof watched>;

const windowLie: Lie = {
  proof: proofOver(honest, before(honest).slice(1), BigInt(own(honest).window_work)),
  evidence: honest.evidence(SLICE),
};

/** Answers in another way to some of the questions. */
function instead(answers: Watched['answers'], answer: (path: string) => unknown): void {
  const get = answers.get.bind(answers);
  answers.get = (path: string) => answer(path) ?? get(path);
}

async function rounds(watch: Watched['watch'], count: number): Promise<string[]> {
  const errors = new Set<string>();
  for (let round = 0; round < count; round++)
    await watch.round().catch((error: Error) => void errors.add(error.message));
  return [...errors];
}

const NONE: Page = { slices: [] };
const newest: Page = { slices: [{ ...own(honest), credits: { root: windowLie.proof.credit_root } }] };

test.each([
  { what: 'no record', page: NONE },
  { what: 'the newest record alone', page: newest },
])('$what where the records of a window are asked for: the round fails until they are there', async ({ page }) => {
  const { watch, alarms, notes, answers } = watched(windowLie);
  let isHiding = true;
  instead(answers, (path) => (isHiding && path.startsWith('slices/pplns?limit=200') ? page : undefined));
  watch.works('pplns');
  const why = 'the pool does not show its records of pplns up to slice';
  expect(await rounds(watch, 10)).toEqual([expect.stringContaining(why)]);
  expect([alarms, notes, watch.unchecked]).toEqual([[], [], 0]);
  const signed = {
    network: honest.records[0]!.network,
    service: 'pplns',
    slice: SLICE,
    chain: 'ab'.repeat(48),
  } as const;
  await expect(watch.signed(signed)).rejects.toThrow(why);
  isHiding = false;
  await rounds(watch, 2);
  expect(alarms).toEqual([`list_false pplns/${SLICE} window_slices`]);
});

test('history that was told anew after a payout, without the record of the other service', async () => {
  for (const [name, make] of Object.entries(LEDGER_LIES)) {
    const { watch, alarms, answers } = watched(make());
    watch.works('pplns');
    instead(answers, (path) => (path.startsWith('slices/solo?limit=1&') ? NONE : undefined));
    const errors = await rounds(watch, 8);
    expect(errors.length + alarms.length, name).toBeGreaterThan(0);
  }
});

test('no slices at all: rewards that are said to be in a list are not passed over for it', async () => {
  const { watch, answers } = watched(truth);
  watch.works('pplns');
  instead(answers, (path) => (/^slices\/pplns\?/.test(path) ? NONE : undefined));
  expect(await rounds(watch, 3)).toEqual([`the pool does not show its slice ${SLICE}`]);
});

test('a window that names slices from before the pool’s first', async () => {
  const first = honest.records[0]!.slice;
  const window = windowLie.proof.window.map((part, i, all) =>
    i === all.length - 1 ? { ...part, slice: first - 1 } : part,
  );
  const { watch, alarms } = watched({ ...windowLie, proof: renamed({ ...windowLie.proof, window }) });
  watch.works('pplns');
  await rounds(watch, 8);
  expect(alarms.join()).toMatch(/list_false/);
});

test('lists that are given up although a node was asked are reported for two hours, and until a later one was checked', () => {
  let now = 0;
  const lists = new UnjudgedLists(() => now);
  lists.settled('solo', 3, ['solo_finder', 'later_list']);
  expect(lists.why).toBeUndefined();
  lists.settled('pplns', 4, ['target', 'later_list']);
  expect(lists.why).toBe('the list of slice 4 of pplns was not checked: target');
  now += 7_200_001;
  expect(lists.why).toBeDefined();
  lists.settled('solo', 5, []);
  expect(lists.why).toBeDefined();
  lists.settled('pplns', 6, []);
  expect(lists.why).toBeUndefined();
});

test('the first page that a miner is shown: lists of slices to come do not count as there before', async () => {
  const run = async (slices: readonly number[] | undefined, said?: number) => {
    const { watch, alarms, answers, heights } = watched(windowLie);
    watch.works('pplns');
    heights.node = (SLICE - 1) * SLICE_CUTS + 3;
    heights.pool = said ?? heights.node;
    const page = 'slices/pplns?limit=50';
    answers.set(page, { slices: (slices ?? []).map((slice) => ({ slice, credits: { root: '00' } })) });
    await rounds(watch, 1);
    answers.delete(page);
    heights.node = heights.pool = DUE_HEIGHT;
    await rounds(watch, 30);
    return alarms;
  };
  const alarmed = [`list_false pplns/${SLICE} window_slices`];
  expect(await run(undefined)).toEqual(alarmed);
  const ascending = Array.from({ length: 50 }, (_, i) => Math.max(SLICE, SLICE + i - 1));
  expect(await run(ascending)).toEqual(alarmed);
  const descending = Array.from({ length: 50 }, (_, i) => SLICE + 49 - i);
  expect(await run(descending)).toEqual(alarmed);
  // With a height that is made up to it.
  expect(await run(descending, 1_000_000)).toEqual(alarmed);
  expect(await run([SLICE + 1, SLICE], (SLICE + 3) * SLICE_CUTS)).toEqual(alarmed);
});

test('the same without a node: nobody but the pool says what is due, so every list that it shows is judged', async () => {
  const { watch, alarms, answers, heights } = watched(windowLie, { node: false });
  watch.works('pplns');
  heights.pool = 1_000_000;
  const page = 'slices/pplns?limit=50';
  const slices = Array.from({ length: 50 }, (_, i) => ({ slice: SLICE + 49 - i, credits: { root: '00' } }));
  answers.set(page, { slices });
  expect((await rounds(watch, 1)).length).toBe(1);
  // They are in no hurry: a new miner does not ask for all of them at once.
  expect(watch.isBehind).toBe(false);
  answers.delete(page);
  heights.pool = DUE_HEIGHT;
  await rounds(watch, 40);
  expect(alarms).toContain(`list_false pplns/${SLICE} window_slices`);
});

/** The list of solo, with all blocks given to one miner. */
function soloList(finder: number): Lie {
  const blocks = honest.blocks(SLICE, 'solo').map((block) => ({ ...block, finder: addressOf(finder) }));
  const sum = (amounts: readonly bigint[]) => amounts.reduce((total, each) => total + each, 0n);
  const reward = sum(blocks.map((block) => BigInt(block.reward)));
  const fee = sum(blocks.map((block) => feeOf(BigInt(block.reward), 10_000n)));
  const credits = new Map([[keyOf(finder), reward - fee]]);
  const tree = sumTree(leavesOf(credits, fromHex));
  const proof = renamed({
    ...honest.proof(SLICE, VICTIM),
    service: 'solo',
    blocks,
    reward: `${reward}`,
    fee: `${fee}`,
    credited: `${reward - fee}`,
    window: [],
    window_work: honest.solo.find(({ slice }) => slice === SLICE)!.window_work,
    credit_accounts: tree.root.count,
    credit_root: toHex(tree.root.hash),
    credit: membership(tree, credits, VICTIM),
  } as PoolProof);
  const otherBlocks = honest.blocks(SLICE, 'pplns').map((block) => block.block_id);
  const evidence = { ...honest.evidence(SLICE), records: honest.solo, otherRecords: honest.records, otherBlocks };
  return { proof, evidence };
}

test('an own solo block in a list that is shown to nobody else: it is not settled by a document that is not judged', async () => {
  const path = `proofs/solo/${SLICE}?address=${ADDRESS}`;
  const run = async (lie: Lie, answer: (reads: number) => unknown) => {
    const { watch, alarms, answers } = watched(lie);
    const block = lie.proof.blocks[0]!.block_id;
    let reads = 0;
    instead(answers, (asked) => (asked === path ? answer(++reads) : undefined));
    watch.works('solo');
    watch.found({ block, service: 'solo', height: SLICE * SLICE_CUTS + 1 });
    await rounds(watch, 6);
    return { alarms, left: (watch.known.save() as { blocks: unknown[] }).blocks.length };
  };
  const theft = soloList((VICTIM + 1) % MINERS);
  const block_id = theft.proof.blocks[0]!.block_id;
  const bare = { blocks: [{ block_id, finder: ADDRESS }] };
  const stolen = { alarms: [`block_finder ${block_id}`], left: 0 };
  expect(await run(soloList(VICTIM), () => undefined)).toEqual({ alarms: [], left: 0 });
  expect(await run(theft, () => undefined)).toEqual(stolen);
  expect(await run(theft, (reads) => (reads % 2 === 0 ? bare : undefined))).toEqual(stolen);
  // Asked in each round, and told so in each: the list is false.
  const always = await run(theft, () => bare);
  expect(always.left).toBe(1);
  expect(always.alarms).toContain(`list_false solo/${SLICE} malformed`);
});

test('an own solo block in another list than the one that was judged before', async () => {
  const theft = soloList((VICTIM + 1) % MINERS);
  const { watch, alarms, answers } = watched(theft);
  watch.works('solo');
  await rounds(watch, 6);
  expect([alarms, watch.unchecked]).toEqual([[], 1]);
  // A list with the right finder, for the finder alone.
  answers.set(`proofs/solo/${SLICE}?address=${ADDRESS}`, soloList(VICTIM).proof);
  watch.found({ block: theft.proof.blocks[0]!.block_id, service: 'solo', height: SLICE * SLICE_CUTS + 1 });
  await rounds(watch, 6);
  expect(alarms).toContain(`list_changed solo/${SLICE}`);
});

test('a node and a clock that are behind together: an honest pool is not accused, and a warning is given', async () => {
  const later = SLICE + Math.ceil(600 / SLICE_CUTS);
  const { watch, alarms, answers, heights, head } = watched(truth);
  watch.works('pplns');
  const blocks = truth.proof.blocks.map(({ block_id }, i) => ({ block_id, credited_with: i === 0 ? later : SLICE }));
  answers.set(`slices/pplns/${SLICE}/blocks`, { blocks });
  heights.pool = DUE_HEIGHT + 1_000;
  head.millis = EPOCH_MILLIS + 10_000 * 60_000;
  const told = truth.evidence.terms!;
  const [first] = told.terms.pplns;
  const changed = { ...told.terms, pplns: [first, { ...first, from_slice: later, fee_ppm: 5_000 }] };
  answers.set('terms', { ...told, terms: changed, height: heights.pool });
  await rounds(watch, 60);
  expect(alarms).toEqual([]);
  expect(watch.lapse).toMatch(/the node is behind, or the pool makes it up/);
});

test('a height that is far above the ledger’s puts no list off, and terms are remembered of the slice that is open', async () => {
  const ids = truth.proof.blocks.map(({ block_id }) => block_id);
  const { watch, alarms, answers, heights } = watched(truth);
  heights.pool = 1_000_000_000;
  answers.set(`slices/pplns/${SLICE}/blocks`, {
    blocks: ids.map((block_id) => ({ block_id, credited_with: 1_000_000 })),
  });
  watch.works('pplns');
  await rounds(watch, 2);
  // The node may be behind: that is reported at once, and the rewards are missed by what the node knows.
  expect(alarms).toEqual([]);
  expect(watch.lapse).toMatch(/the node is behind, or the pool makes it up/);
  heights.node += 5_760;
  for (let slice = SLICE + 1; slice < SLICE + 20; slice++)
    for (const service of ['pplns', 'solo']) answers.set(`slices/${service}/${slice}/blocks`, { blocks: [] });
  await rounds(watch, 2);
  expect(alarms).toContain(`rewards_withheld pplns/${SLICE}`);
  const { terms } = watch.known.save() as { terms: { slices: [string, string][] } };
  const slices = terms.slices.map(([name]) => Number(name.split('/')[1]));
  for (const slice of slices) expect(slice).toBeLessThanOrEqual(Math.ceil((heights.node + 240) / SLICE_CUTS));
});
