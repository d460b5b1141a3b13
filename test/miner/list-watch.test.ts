/**
 * The miner judges the pool's credit lists by the one verifier, its own blocks by their mark, and the pool's address by its jobs. Every lie that the verifier
 * knows is said by the miner too; an honest pool is accused of nothing.
 */
import { expect, test } from 'vitest';
import { ListWatch } from '../../miner/books/list-watch.ts';
import { SignedRecords } from '../../miner/books/signed-records.ts';
import { PageBooks } from '../../miner/browser/page-books.ts';
import { LinkBooks } from '../../miner/client/link-books.ts';
import type { SessionAction } from '../../miner/client/session-events.ts';
import { SOLO_MARK } from '../../protocol/block-service.ts';
import { judgeProof } from '../../protocol/books-verdict.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { Receipt } from '../../protocol/receipt.ts';
import { encodeExtranonce } from '../../protocol/tag.ts';
import { keyOf, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { LEDGER_LIES } from '../protocol/books-ledger-lies.ts';
import { honest, type Lie, lyingBooks, own, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { LIES } from '../protocol/books-lies.ts';
import { gathered, sourcesOf } from '../protocol/books-sources.ts';

const truth: Lie = { proof: honest.proof(SLICE, VICTIM), evidence: honest.evidence(SLICE) };
const ADDRESS = truth.proof.address;

/** When the list of the slice must be there. */
const DUE_HEIGHT = (SLICE + 1) * SLICE_CUTS + 96 + 96 + 16;

/** The answers of a pool, with the list of one slice in its page of slices; and those of a node. */
function watched(
  lie: Lie,
  options: {
    readonly node?: boolean;
    readonly blocks?: Readonly<Record<string, string[]>>;
    readonly height?: number;
  } = {},
) {
  const { pool, node: told } = sourcesOf(lie);
  const { height = DUE_HEIGHT } = options;
  const heights: { node: number; pool: number | undefined } = { node: height, pool: height };
  const node = {
    ...told,
    addressChanges: async (asked: never) => ({
      ...(await told?.addressChanges(asked)),
      indexed_height: heights.node,
    }),
  } as typeof told;
  /** What the pool answers instead. */
  const answers = new Map<string, unknown>();
  const alarms: string[] = [];
  const notes: string[] = [];
  let now = 0;
  const answered = async (path: string): Promise<unknown> => {
    const instead = answers.get(path);
    if (instead instanceof Error) throw instead;
    if (instead !== undefined) return instead;
    if (path === 'terms') return { ...((await pool(path)) as object), height: heights.pool };
    const named = options.blocks?.[path];
    if (named !== undefined) return { blocks: named.map((block_id) => ({ block_id, credited_with: SLICE })) };
    const answer = await pool(path);
    if (!/^slices\/[a-z]+\?/.test(path)) return answer;
    const { slices } = answer as { slices: { slice: number }[] };
    return { slices: slices.map((record) => ({ ...record, credits: record.slice === lie.proof.slice ? {} : null })) };
  };
  const watch = new ListWatch(ADDRESS, {
    pool: answered,
    node: options.node === false ? null : node,
    alarm: (kind, what, fields) => void alarms.push(`${kind} ${what} ${fields.reason ?? ''}`.trim()),
    note: (message) => void notes.push(message),
    nowMillis: () => (now += 60_000),
  });
  return { watch, alarms, notes, answers, heights };
}

/** What looks false is read again before the pool is accused. */
async function twice(run: () => Promise<unknown>): Promise<void> {
  await run();
  await run();
}

test('an honest list is proven with a node; without one it is not called so, and nobody is accused', async () => {
  const { watch, alarms } = watched(truth);
  watch.pays(truth.evidence.terms?.address ?? null);
  watch.works('pplns');
  await watch.round();
  await watch.round();
  expect([watch.proven, watch.unchecked, alarms]).toEqual([1, 0, []]);
  const alone = watched(truth, { node: false });
  alone.watch.works('pplns');
  await alone.watch.round();
  expect([alone.watch.proven, alone.watch.unchecked, alone.alarms]).toEqual([0, 1, []]);
  expect(alone.notes).toEqual(['credit lists are checked without the ledger (--node-api)']);
  // What was judged stays judged.
  const again = watched(truth);
  again.watch.restore(JSON.parse(JSON.stringify(watch.save())));
  again.watch.works('pplns');
  await again.watch.round();
  expect(again.watch.proven).toBe(0);
});

test('every lie that the verifier calls false is said by the miner', async () => {
  let said = 0;
  for (const [name, make] of Object.entries({ ...LIES, ...LEDGER_LIES })) {
    const lie = make();
    // What the sources of the test can show of it; a document of another form is false as well.
    const verdict = await gathered(lie).then(
      (evidence) => judgeProof(lie.proof, evidence).verdict,
      () => 'false',
    );
    const { watch, alarms } = watched(lie);
    watch.pays(lie.evidence.poolAddress);
    watch.works('pplns');
    await twice(() => watch.round().catch(() => undefined));
    expect(watch.proven, name).toBe(0);
    if (verdict === 'false' && lie.proof.slice === SLICE && lie.proof.address === ADDRESS) {
      expect(alarms.join(), name).toMatch(/list_false|address_other/);
      said++;
    }
  }
  expect(said).toBeGreaterThanOrEqual(60);
});

test('another account’s proof, one that is no proof, and another address than the jobs pay', async () => {
  const other = watched({ ...truth, proof: { ...truth.proof, address: `${ADDRESS}x` } });
  other.watch.works('pplns');
  await other.watch.round();
  expect([other.alarms, other.watch.isSuspicious]).toEqual([[], true]);
  await other.watch.round();
  expect(other.watch.isSuspicious).toBe(false);
  expect(other.alarms).toEqual([`list_false pplns/${SLICE} malformed`]);
  const none = watched({ ...truth, proof: { service: 'pplns', slice: SLICE, address: ADDRESS, blocks: [] } as never });
  none.watch.works('pplns');
  await twice(() => none.watch.round());
  // Its blocks are named nowhere either.
  expect(none.alarms).toEqual([`list_false pplns/${SLICE} malformed`, `rewards_hidden pplns/${SLICE}`]);
  const elsewhere = watched(truth);
  elsewhere.watch.pays('another');
  await elsewhere.watch.round();
  expect(elsewhere.alarms).toEqual([`address_other ${truth.evidence.terms?.address}`]);
});

test('a block that was found on a job of PPLNS and that the pool books as solo', async () => {
  const block = 'ab'.repeat(48);
  const found = { block, service: 'pplns', height: SLICE * SLICE_CUTS + 1 } as const;
  const lies = watched(truth, { blocks: { [`slices/solo/${SLICE}/blocks`]: [block] } });
  lies.watch.found(found);
  await lies.watch.round();
  await lies.watch.round();
  expect(lies.alarms).toEqual([`block_service ${block}`]);
  const fair = watched(truth, { blocks: { [`slices/pplns/${SLICE}/blocks`]: [block] } });
  fair.watch.found(found);
  await fair.watch.round();
  expect(fair.alarms).toEqual([]);
});

test('a solo block of this miner that the pool gives to somebody else', async () => {
  const block = 'ab'.repeat(48);
  const found = { block, service: 'solo', height: SLICE * SLICE_CUTS + 1 } as const;
  const listed = (finder: string) => ({ blocks: [{ block_id: block, finder }] });
  const proofOf = async (finder: string | undefined) => {
    const { watch, alarms, answers } = watched(truth, { blocks: { [`slices/solo/${SLICE}/blocks`]: [block] } });
    watch.found(found);
    // The list is not made yet.
    await watch.round();
    if (finder !== undefined) answers.set(`proofs/solo/${SLICE}?address=${ADDRESS}`, listed(finder));
    await watch.round();
    return alarms;
  };
  expect(await proofOf('somebody')).toEqual([`block_finder ${block}`]);
  expect(await proofOf(ADDRESS)).toEqual([]);
  expect(await proofOf(undefined)).toEqual([]);
});

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

test('many lists that the pool names are asked for a few at a time', async () => {
  let asked = 0;
  const terms = { ...truth.evidence.terms, height: 1_000_000 };
  const due = Math.floor((terms.height - 208) / SLICE_CUTS) - 1;
  const many = Array.from({ length: 20_000 }, (_, i) => ({
    block_id: toHex(Uint8Array.of(i >> 8, i)),
    credited_with: due + (i % 20),
  }));
  const watch = new ListWatch(ADDRESS, {
    pool: async (path) => {
      asked++;
      if (path === 'terms') return terms;
      return path.endsWith('blocks') ? { blocks: many } : { slices: [] };
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

test('a pool that leaves out how far its books are is told of once, and its terms are remembered by the node', async () => {
  const { watch, alarms, notes, answers, heights } = watched(truth);
  heights.pool = undefined;
  await twice(() => watch.round());
  expect(notes).toEqual(['the pool does not say how far its books are']);
  const terms = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
  const pplns = terms.terms.pplns.map((each) => ({ ...each, fee_ppm: 500_000 }));
  answers.set('terms', { ...terms, terms: { ...terms.terms, pplns } });
  for (let round = 0; round < 40; round++) await watch.round();
  expect(alarms.join()).toMatch(/terms_changed/);
});

test('a connection that is lost is nobody’s fault, and terms without end or order are a failure of the round', async () => {
  const blocks = `slices/pplns/${SLICE}/blocks`;
  for (const node of [true, false]) {
    const { watch, alarms, answers } = watched(truth, { height: DUE_HEIGHT, node });
    watch.works('pplns');
    // As `fetch` throws it.
    answers.set(blocks, new TypeError('fetch failed'));
    for (let round = 0; round < 3; round++) await expect(watch.round()).rejects.toThrow('fetch failed');
    expect([alarms, watch.isSuspicious]).toEqual([[], false]);
    answers.set(blocks, { blocks: 7 });
    await twice(() => watch.round().catch(() => undefined));
    expect(alarms.join()).toMatch(/rewards_hidden/);
  }
  const terms = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
  const [first] = terms.terms.pplns;
  const many = Array.from({ length: 10_001 }, (_, from_slice) => ({ ...first, from_slice }));
  for (const pplns of [many, [{ ...first, from_slice: 5 }, first], [{ ...first, fee_ppm: 0.5 }], [0], {}]) {
    const { watch, answers } = watched(truth);
    answers.set('terms', { ...terms, terms: { ...terms.terms, pplns } });
    await expect(watch.round()).rejects.toThrow('no such form');
  }
});

test('terms that are changed for a slice that has begun', async () => {
  const terms = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
  const [first] = terms.terms.pplns as [object];
  const dearer = (from_slice: number) => ({
    ...{ ...terms, height: SLICE * SLICE_CUTS + 1 },
    terms: { ...terms.terms, pplns: [first, { ...first, from_slice, fee_ppm: 500_000 }] },
  });
  const { watch, alarms, answers } = watched(truth);
  answers.set('terms', { ...terms, height: SLICE * SLICE_CUTS });
  await watch.round();
  // With notice: from the next slice on.
  answers.set('terms', dearer(SLICE + 1));
  await watch.round();
  expect(alarms).toEqual([]);
  const again = watched(truth);
  again.watch.restore(JSON.parse(JSON.stringify(watch.save())));
  // Not at once: books that fell back may lack their newest slices for a while.
  again.answers.set('terms', dearer(SLICE));
  await again.watch.round();
  again.answers.set('terms', dearer(SLICE + 1));
  for (let round = 0; round < 60; round++) await again.watch.round();
  expect(again.alarms).toEqual([]);
  again.answers.set('terms', dearer(SLICE));
  for (let round = 0; round < 40; round++) await again.watch.round();
  expect(new Set(again.alarms)).toEqual(new Set([`terms_changed pplns/${SLICE}`]));
});

test('a record that was signed, and told anew before any payout commits it', async () => {
  const record = own(honest) as unknown as Receipt;
  const uncommitted: Lie = { ...truth, evidence: { ...truth.evidence, commitments: [] } };
  for (const node of [true, false]) {
    const { watch, alarms, answers } = watched(uncommitted, { node });
    const signed = new SignedRecords();
    signed.add(record);
    const round = () => signed.check((each) => watch.signed(each));
    await twice(round);
    expect(alarms).toEqual([]);
    const books = lyingBooks(({ slices }) => void slices[3]!.set(keyOf(VICTIM), 1n));
    const retold = { slices: books.records.filter(({ slice }) => slice <= SLICE).reverse() };
    answers.set(`slices/pplns?limit=200&cursor=${SLICE + 1}-0`, retold);
    await twice(round);
    expect(alarms).toEqual([`ledger_other pplns/${SLICE} slice_record`]);
  }
});

test('a record that the pool signed is held against its payouts on the ledger', async () => {
  const record = own(honest) as unknown as Receipt;
  const fair = watched(truth);
  await fair.watch.signed(record);
  expect(fair.alarms).toEqual([]);
  // Documents of different moments: it looked false once, and no more the next time.
  expect(await fair.watch.signed({ ...record, chain: 'ab'.repeat(48) })).toBe('open');
  await fair.watch.signed(record);
  expect([fair.alarms, fair.watch.isSuspicious]).toEqual([[], false]);
  await twice(() => fair.watch.signed({ ...record, chain: 'ab'.repeat(48) }));
  expect(fair.alarms).toEqual([`ledger_other pplns/${SLICE} slice_record`]);
  // The records are as they were signed, and a payout commits others.
  const commitments = (truth.evidence.commitments ?? []).map((each) => ({
    ...each,
    payload_hex: (each.payload_hex ?? '').replace(/..$/, (digit) => (digit === '30' ? '31' : '30')),
  }));
  expect(commitments.length).toBeGreaterThan(0);
  const rewritten = watched({ ...truth, evidence: { ...truth.evidence, commitments } });
  await twice(() => rewritten.watch.signed(record));
  expect(rewritten.alarms).toEqual([`ledger_other pplns/${SLICE} commitment`]);
});

const extranonceOf = (thread: number): Uint8Array => {
  const unique = new Uint8Array(17).fill(7, 0, 8);
  unique[8] = thread;
  return encodeExtranonce('', unique);
};

test('a connection tells what its jobs say of themselves, whom they pay, and the blocks that were found on them', () => {
  const told: unknown[] = [];
  const note =
    (name: string) =>
    (_: number, ...rest: unknown[]) =>
      void told.push([name, ...rest]);
  const link = new LinkBooks(0, {
    ...{ onOffer: note('offer'), onReceipt: note('receipt'), onTold: note('told') },
    ...{ onAddress: note('address'), onService: note('service'), onFound: note('found') },
  });
  const act = (action: unknown) => link.act(action as SessionAction);
  const job = (jobId: number, thread: number) =>
    act({ kind: 'job', job: { job: { jobId, extranonce: extranonceOf(thread) }, height: 100 + jobId } });
  const boot = '07'.repeat(8);
  act({ kind: 'ready', subscribed: { pool: { address: 'the pool' } } });
  job(1, 3);
  job(2, 3);
  act({ kind: 'verdict', share: { jobId: 1 }, told: 5n, blockId: new Uint8Array([9]) });
  job(3, SOLO_MARK | 3);
  act({ kind: 'verdict', share: { jobId: 3 }, told: 6n, blockId: undefined });
  expect(told).toEqual([
    ['address', 'the pool'],
    ['service', 'pplns', undefined],
    ['told', boot, 5n, 'pplns'],
    ['found', { block: toHex(new Uint8Array([9])), service: 'pplns', height: 101 }],
    ['service', 'solo', 'pplns'],
    ['told', boot, 6n, 'solo'],
  ]);
});

test('a page shows what its watch found: jobs that change their service, and a pool’s other key', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, text: string) => void kept.set(name, text),
  };
  let shown = 0;
  const open = () =>
    new PageBooks(
      { api: 'http://127.0.0.1:1/', pool: 'p', address: ADDRESS, worker: 'w', storage, node: null },
      () => void shown++,
    );
  const page = open();
  page.onOffer(0, { key: new Uint8Array(1952).fill(1), api: '' });
  page.onService(0, 'pplns', undefined);
  expect(page.figures.alarms).toEqual([]);
  page.onService(0, 'solo', 'pplns');
  page.stop();
  expect(page.figures.alarms.map(({ message }) => message)).toEqual([
    'the pool’s jobs are of another service than it books their work under',
  ]);
  // The key of the first visit is remembered.
  const next = open();
  next.onOffer(0, { key: new Uint8Array(1952).fill(2), api: '' });
  next.stop();
  expect(next.figures.alarms.map(({ message }) => message)).toEqual([
    'the pool has another key than before: its receipts are not believed',
  ]);
  expect(shown).toBe(2);
});
