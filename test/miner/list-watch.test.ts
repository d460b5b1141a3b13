/**
 * The miner judges the pool's credit lists by the one verifier, its own blocks by their mark, and the pool's address by its jobs. Every lie that the verifier
 * knows is said by the miner too; an honest pool is accused of nothing.
 */
import { expect, test } from 'vitest';
import { SignedRecords } from '../../miner/books/signed-books.ts';
import { PageBooks } from '../../miner/browser/page-books.ts';
import { LinkBooks } from '../../miner/client/link-books.ts';
import type { SessionAction } from '../../miner/client/session-events.ts';
import { SOLO_MARK } from '../../protocol/books/block-service.ts';
import { judgeProof } from '../../protocol/books/books-verdict.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { toHex } from '../../protocol/bytes.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { keyOf, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { LEDGER_LIES } from '../protocol/books-ledger-lies.ts';
import { honest, type Lie, lyingBooks, own, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { LIES } from '../protocol/books-lies.ts';
import { gathered } from '../protocol/books-sources.ts';
import { ADDRESS, DUE_HEIGHT, truth, twice, watched } from './watched-lists.ts';

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
  again.watch.known.restore(JSON.parse(JSON.stringify(watch.known.save())));
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
    // The list is there, and its proof is not given.
    await expect(watch.round()).rejects.toThrow('proofs/solo');
    if (finder !== undefined) answers.set(`proofs/solo/${SLICE}?address=${ADDRESS}`, listed(finder));
    await watch.round().catch(() => undefined);
    return alarms;
  };
  expect(await proofOf('somebody')).toEqual([`block_finder ${block}`]);
  expect(await proofOf(ADDRESS)).toEqual([]);
  expect(await proofOf(undefined)).toEqual([]);
  // As a pool does that does not know the finder: an honest one whose journal was lost, or one that says so.
  expect(await proofOf(truth.evidence.terms?.address)).toEqual([`block_unowned ${block}`]);
});

test('a solo block of this miner in a later list that takes a higher fee than the block’s own slice had', async () => {
  const block = 'ab'.repeat(48);
  const terms = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
  const [first] = terms.terms.solo;
  const late = SLICE + 1;
  const known = [{ ...first, fee_ppm: 10_000 }];
  const of = async (fee: number, before: readonly object[], taken: unknown = fee) => {
    const { watch, alarms, answers } = watched(truth);
    const solo = [...before, { ...first, from_slice: late, fee_ppm: fee }];
    answers.set('terms', { ...terms, terms: { ...terms.terms, solo } });
    answers.set(`slices/pplns/${SLICE}/blocks`, { blocks: [] });
    answers.set(`slices/solo/${SLICE}/blocks`, { blocks: [{ block_id: block, state: 'paid', credited_with: late }] });
    answers.set(`slices/solo?limit=1&cursor=${late + 1}-0`, { slices: [{ slice: late, credits: {} }] });
    const listed = { fee_ppm: taken, blocks: [{ block_id: block, finder: ADDRESS }] };
    answers.set(`proofs/solo/${late}?address=${ADDRESS}`, listed);
    watch.found({ block, service: 'solo', height: SLICE * SLICE_CUTS + 1 });
    for (let round = 0; round < 3; round++) await watch.round().catch(() => undefined);
    return [...new Set(alarms.filter((alarm) => alarm.startsWith('block_')))];
  };
  expect(await of(20_000, known)).toEqual([`block_fee ${block}`]);
  for (const fee of [0, 9_999, 10_000]) expect(await of(fee, known)).toEqual([]);
  // Of a slice without terms nothing is known, nor of a list that names no fee.
  expect(await of(20_000, [])).toEqual([]);
  expect(await of(20_000, known, '20000')).toEqual([]);
});

test('a solo block whose list is not made yet: no proof is asked for, however long that takes, and then it is looked at', async () => {
  const block = 'ab'.repeat(48);
  const { watch, alarms, notes, answers } = watched(truth, { blocks: { [`slices/solo/${SLICE}/blocks`]: [block] } });
  const page = `slices/solo?limit=1&cursor=${SLICE + 1}-0`;
  answers.set(page, { slices: [{ slice: SLICE, credits: null }] });
  watch.found({ block, service: 'solo', height: SLICE * SLICE_CUTS + 1 });
  for (let round = 0; round < 300; round++) await watch.round();
  answers.set(page, { slices: [{ slice: SLICE, credits: {} }] });
  answers.set(`proofs/solo/${SLICE}?address=${ADDRESS}`, { blocks: [{ block_id: block, finder: 'somebody' }] });
  await watch.round();
  expect([alarms, notes]).toEqual([[`block_finder ${block}`], []]);
});

test('a pool that leaves out how far its books are is reported once, and its terms are remembered by the node', async () => {
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

test('a block that is found while another is looked for is not forgotten', async () => {
  const [first, second] = ['ab', 'cd'].map((each) => each.repeat(48)) as [string, string];
  const { watch, alarms, answers } = watched(truth, { blocks: { [`slices/solo/${SLICE}/blocks`]: [first, second] } });
  const found = (block: string) => watch.found({ block, service: 'pplns', height: SLICE * SLICE_CUTS + 1 });
  found(first);
  const get = answers.get.bind(answers);
  answers.get = (path) => {
    if (path === `slices/solo/${SLICE}/blocks` && alarms.length === 0) found(second);
    return get(path);
  };
  await twice(() => watch.round().catch(() => undefined));
  expect(alarms).toEqual([`block_service ${first}`, `block_service ${second}`]);
});

test('a solo block of this miner that the pool never credits', async () => {
  const block = 'ab'.repeat(48);
  const path = `slices/solo/${SLICE}/blocks`;
  const proof = `proofs/solo/${SLICE}?address=${ADDRESS}`;
  const run = async (answer: unknown, booked: boolean) => {
    const { watch, alarms, notes, answers } = watched(truth, booked ? { blocks: { [path]: [block] } } : {});
    for (const beside of [-1, 0, 1])
      for (const service of ['pplns', 'solo'])
        if (beside !== 0 || !booked) answers.set(`slices/${service}/${SLICE + beside}/blocks`, { blocks: [] });
    answers.set(proof, answer);
    watch.found({ block, service: 'solo', height: SLICE * SLICE_CUTS + 1 });
    let failures = 0;
    for (let round = 0; round < 300; round++) await watch.round().catch(() => failures++);
    return [alarms, notes, failures, (watch.known.save() as { blocks: unknown[] }).blocks.length];
  };
  // A pool that gives no proof fails, and the block is not forgotten.
  expect(await run(new Error('status 500'), true)).toEqual([[], [], 300, 1]);
  expect(await run({ blocks: [] }, true)).toEqual([[`block_finder ${block}`], [], 0, 0]);
  expect(await run({ blocks: [] }, false)).toEqual([[], ['the pool credits a block of this miner to nobody'], 0, 0]);
});

test('terms that are changed for a slice that has begun', async () => {
  const terms = truth.evidence.terms as NonNullable<typeof truth.evidence.terms>;
  const [first] = terms.terms.pplns as [object];
  const dearer = (from_slice: number) => ({
    ...terms,
    height: SLICE * SLICE_CUTS + 1,
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
  again.watch.known.restore(JSON.parse(JSON.stringify(watch.known.save())));
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

function toldBooks() {
  const told: unknown[] = [];
  const note =
    (name: string) =>
    (...rest: unknown[]) =>
      void told.push([name, ...rest]);
  const link = new LinkBooks({
    offered: note('offer'),
    received: note('receipt'),
    told: note('told'),
    pays: note('address'),
    works: note('service'),
    found: note('found'),
    worked: note('height'),
  });
  const act = (action: unknown) => link.act(action as SessionAction);
  const job = (jobId: number, thread: number, farm?: object) =>
    act({ kind: 'job', job: { job: { jobId, extranonce: extranonceOf(thread) }, height: 100 + jobId, farm } });
  return { told, act, job };
}

test('a connection tells what its jobs say of themselves, whom they pay, and the blocks that were found on them', () => {
  const { told, act, job } = toldBooks();
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
    ['height', 101],
    ['height', 102],
    ['told', boot, 5n, 'pplns'],
    ['found', { block: toHex(new Uint8Array([9])), service: 'pplns', height: 101 }],
    ['service', 'solo', 'pplns'],
    ['height', 103],
    ['told', boot, 6n, 'solo'],
  ]);
});

test('a farm session tells the same: the receipts of all rigs come on it, and what was accepted of all of them', () => {
  const { told, act, job } = toldBooks();
  const boot = '07'.repeat(8);
  act({ kind: 'verdict', share: { jobId: 0 }, told: 4n, blockId: undefined });
  job(1, 3, {});
  act({ kind: 'receipt', receipt: 'of a rig' });
  act({ kind: 'verdict', share: { jobId: 1 }, told: 5n, blockId: undefined });
  expect(told).toEqual([
    ['service', 'pplns', undefined],
    ['height', 101],
    ['told', boot, 4n, 'pplns'],
    ['receipt', 'of a rig'],
    ['told', boot, 5n, 'pplns'],
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
  page.of().offered({ key: new Uint8Array(1952).fill(1), api: '' });
  page.of().works('pplns', undefined);
  expect(page.figures.alarms).toEqual([]);
  page.of().works('solo', 'pplns');
  page.stop();
  expect(page.figures.alarms.map(({ message }) => message)).toEqual([
    'the pool’s jobs are of another service than it books their work under',
  ]);
  // The key of the first visit is remembered.
  const next = open();
  next.of().offered({ key: new Uint8Array(1952).fill(2), api: '' });
  next.stop();
  expect(next.figures.alarms.map(({ message }) => message)).toEqual([
    'the pool has another key than before: its receipts are not accepted',
  ]);
  expect(shown).toBe(2);
});
