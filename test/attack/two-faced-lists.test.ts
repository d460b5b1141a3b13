/**
 * A pool that answers one question of a round in another way than the next: a list that is said to have blocks which it does not have, other terms to judge by than
 * to remember, silence about what would show that a list is false, and a list for one reader alone.
 */
import { expect, test } from 'vitest';
import { ListWatch } from '../../miner/books/list-watch.ts';
import { judgeListEvidence, type ListEvidence } from '../../protocol/evidence/list-evidence.ts';
import { SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { ADDRESS, DUE_HEIGHT, truth, twice } from '../miner/watched-lists.ts';
import { honest, type Lie, lyingBooks, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { sourcesOf } from '../protocol/books-sources.ts';

type Record = { readonly slice: number };
const NO_BLOCKS = { blocks: [] };
const terms = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
const withFee = (fee_ppm: number) => {
  const all = terms.terms.pplns.map((each) => ({ ...each, fee_ppm }));
  return { ...terms, terms: { pplns: all, solo: all } };
};

/** A watch over a pool with the list of one slice; the node has what the list's evidence has. */
function watching(
  lie: Lie,
  instead: (path: string) => unknown,
  { rewards, cutMillis }: { readonly rewards?: readonly object[]; readonly cutMillis?: number | undefined } = {},
) {
  const { pool, node } = sourcesOf(lie);
  const alarms: string[] = [];
  const notes: string[] = [];
  const evidence: ListEvidence[] = [];
  const clock = { height: DUE_HEIGHT, now: 0 };
  const root = lie.proof.credit_root;
  const watch = new ListWatch(ADDRESS, {
    pool: async (path) => {
      const said = instead(path);
      if (said instanceof Error) throw said;
      if (said !== undefined) return said;
      if (path === 'terms') return { ...lie.evidence.terms, height: clock.height };
      const asked = /^slices\/\w+\/(\d+)\/blocks$/.exec(path);
      if (asked !== null && Number(asked[1]) !== lie.proof.slice) return NO_BLOCKS;
      const answer = await pool(path);
      if (!/^slices\/\w+\?/.test(path)) return answer;
      const { slices } = answer as { slices: Record[] };
      return { slices: slices.map((each) => ({ ...each, credits: each.slice === lie.proof.slice ? { root } : null })) };
    },
    node: {
      ...node,
      ...(cutMillis === undefined
        ? {}
        : {
            cuts: async ({ before = 100_001 }: { before?: number }) => ({
              cuts: [{ height: before - 1, finalized_at_millis: (before - 1) * cutMillis }],
            }),
          }),
      addressChanges: async (asked: { after_height: number }) => {
        const all = (rewards ?? (await node?.addressChanges(asked as never))?.changes) as {
          finalized_height: number;
        }[];
        const isTold = ({ finalized_height: at }: { finalized_height: number }) => at > asked.after_height;
        return { changes: all.filter(isTold), indexed_height: clock.height };
      },
    } as never,
    alarm: (kind, what, fields, shown) => {
      alarms.push(`${kind} ${what} ${fields.reason ?? fields.why ?? ''}`.trim());
      if (shown !== undefined) evidence.push(shown as ListEvidence);
    },
    note: (message) => void notes.push(message),
    wallMillis: Date.now,
    nowMillis: () => (clock.now += 60_000),
  });
  watch.works('pplns');
  return { watch, alarms, notes, clock, evidence };
}

test('blocks that are said to be in a later list, which is there and right, and does not have them', async () => {
  const before: Lie = { proof: honest.proof(SLICE - 1, VICTIM), evidence: honest.evidence(SLICE - 1) };
  const rewards = [before, truth].flatMap(({ proof, evidence }) =>
    [...(evidence.rewards ?? [])].map(([transaction_id, { amount }]) => ({
      kind: 'received',
      source: 'work_reward',
      transaction_id,
      amount,
      finalized_height: proof.slice * SLICE_CUTS + 97,
    })),
  );
  const others = (before.evidence.otherBlocks ?? []).map((block_id) => ({ block_id, credited_with: SLICE - 1 }));
  const moved = before.proof.blocks.map(({ block_id }) => ({ block_id, credited_with: SLICE }));
  const { watch, alarms, clock } = watching(
    truth,
    (path) => {
      if (path === `slices/pplns/${SLICE - 1}/blocks`) return { blocks: moved };
      return path === `slices/solo/${SLICE - 1}/blocks` ? { blocks: others } : undefined;
    },
    { rewards },
  );
  clock.height = DUE_HEIGHT - SLICE_CUTS;
  await twice(() => watch.round());
  expect([alarms, watch.proven]).toEqual([[], 1]);
  clock.height = DUE_HEIGHT;
  await twice(() => watch.round());
  expect(alarms).toEqual([`rewards_hidden pplns/${SLICE - 1} not_in_list`]);
});

test('one fee for the reader who remembers, and another for the one who judges', async () => {
  const dear = lyingBooks((draft) => {
    draft.feePpm = 300_000;
  });
  const lie: Lie = { proof: dear.proof(SLICE, VICTIM), evidence: { ...dear.evidence(SLICE), terms: withFee(300_000) } };
  let reads = 0;
  const { watch, alarms, clock } = watching(lie, (path) =>
    path === 'terms' ? { ...withFee(reads++ === 0 ? 10_000 : 300_000), height: clock.height } : undefined,
  );
  for (let round = 0; round < 2; round++) {
    reads = 0;
    await watch.round();
    expect(reads).toBe(1);
  }
  expect([alarms, watch.proven]).toEqual([[`list_false pplns/${SLICE} terms`], 0]);
});

test('no answer to what a list is compared with: it is never called unchecked, and is asked for until it can be judged', async () => {
  const dear = lyingBooks((draft) => {
    draft.feePpm = 300_000;
  });
  const lie: Lie = { ...truth, proof: dear.proof(SLICE, VICTIM) };
  for (const silent of [/^slices\/pplns\?limit=200/, /^commitments/, /^slices\/solo\/18\/blocks/]) {
    let isSilent = true;
    const { watch, alarms, notes } = watching(lie, (path) =>
      isSilent && silent.test(path) ? new Error('status 503') : undefined,
    );
    for (let round = 0; round < 10; round++) await expect(watch.round()).rejects.toThrow('status 503');
    expect([alarms, notes, watch.proven, watch.unchecked]).toEqual([[], [], 0, 0]);
    isSilent = false;
    await twice(() => watch.round());
    expect(alarms).toEqual([`list_false pplns/${SLICE} terms`]);
  }
});

test('a list for one reader: its root is not the one that everybody is shown', async () => {
  const shown = {
    slices: honest.records
      .map((each) => ({ ...each, credits: each.slice === SLICE ? { root: 'ab'.repeat(48) } : null }))
      .reverse(),
  };
  const { watch, alarms } = watching(truth, (path) => (path.startsWith('slices/pplns?limit=200') ? shown : undefined));
  await twice(() => watch.round());
  expect([alarms, watch.proven]).toEqual([[`list_false pplns/${SLICE} credit_root`], 0]);
});

test('a list that was judged, and another one of the same slice later: told as a suspicion, once, also after a restart', async () => {
  const other = { slices: [{ slice: SLICE, credits: { root: 'ab'.repeat(48) } }] };
  let isOther = false;
  const answer = (path: string) => (isOther && path === 'slices/pplns?limit=50' ? other : undefined);
  const first = watching(truth, answer);
  await first.watch.round();
  expect(first.watch.proven).toBe(1);
  const { watch, alarms, evidence } = watching(truth, answer);
  watch.known.restore(JSON.parse(JSON.stringify(first.watch.known.save())));
  await twice(() => watch.round());
  expect(alarms).toEqual([]);
  isOther = true;
  for (let round = 0; round < 6; round++) await watch.round();
  expect(alarms).toEqual([`list_changed pplns/${SLICE}`]);
  // The head of the first list was kept over the restart: anybody can compute its name.
  expect(evidence).toMatchObject([{ before: { list_id: truth.proof.list_id }, now: { credit_root: 'ab'.repeat(48) } }]);
  expect(judgeListEvidence(evidence[0]!)).toBe('two_lists');
  expect(evidence[0]?.before.head?.blocks).toEqual(truth.proof.blocks);
});

test('a false list that newer slices have pushed off the page is judged all the same, also after a restart', async () => {
  const dear = lyingBooks((draft) => {
    draft.feePpm = 300_000;
  });
  const lie: Lie = { ...truth, proof: dear.proof(SLICE, VICTIM) };
  const away = (path: string) => (path === 'slices/pplns?limit=50' ? { slices: [] } : undefined);
  const before = watching(lie, away);
  await before.watch.round();
  const { watch, alarms } = watching(lie, away);
  watch.known.restore(JSON.parse(JSON.stringify(before.watch.known.save())));
  await twice(() => watch.round());
  expect(alarms).toEqual([`list_false pplns/${SLICE} terms`]);
});

test.each([
  { cuts: 5, cutMillis: undefined, isShort: true },
  { cuts: 6, cutMillis: undefined, isShort: false },
  // How long a cut takes is for the ledger to say.
  { cuts: 100, cutMillis: 100, isShort: true },
  { cuts: 5, cutMillis: 10_000, isShort: false },
])('slices that close faster than a miner can look at them are reported (%o)', async ({ cuts, cutMillis, isShort }) => {
  const short = terms.terms.pplns.map((each) => ({ ...each, slice_cuts: cuts }));
  const said = () => ({ ...terms, height: clock.height, terms: { pplns: short, solo: short } });
  const instead = (path: string) => (path === 'terms' ? said() : path.endsWith('/blocks') ? NO_BLOCKS : undefined);
  const { watch, alarms, clock } = watching(truth, instead, { cutMillis, rewards: [] });
  const rounds = async (slices: number) => {
    for (let round = 0; round < 20; round++) {
      clock.height += slices * cuts;
      await watch.round().catch(() => undefined);
    }
  };
  // As long as the miner keeps up there is nothing to tell.
  await rounds(1);
  expect(alarms).not.toContain('slices_short');
  await rounds(20);
  expect(alarms.includes('slices_short')).toBe(isShort);
});
