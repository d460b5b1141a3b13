/**
 * A pool that answers the miner's questions about its books with whatever it likes: the miner's memory and files stay small, what one pool says
 * changes nothing that is known of others, and no answer makes the watch look away.
 */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MOST_EVIDENCE, writeEvidence } from '../../miner/books/books-file.ts';
import { ListWatch } from '../../miner/books/list-watch.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { EVIDENCE_FORMAT, type Evidence } from '../../protocol/evidence/receipt-evidence.ts';
import { checkOffer } from '../../protocol/stratum/receipt-messages.ts';
import { ALL, mine, Played, PlayedPool, SLICE_MILLIS } from '../miner/played-pool.ts';
import { honest, type Lie, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { sourcesOf } from '../protocol/books-sources.ts';
import { temporaryDirectory } from '../temporary.ts';

const LONG = 'x'.repeat(1_000_000);

test('answers without end are dealt with one by one', async () => {
  const known: number[] = [];
  let asked = 0;
  const answers = (url: URL) => {
    const after = Number(url.searchParams.get('after'));
    if (after === 2_000_000_000) return undefined;
    known.push(played.alarms.length);
    const slice = 100 + asked++;
    const receipts = [{ ...bad, slice }];
    return { kept_from: 1, newest: 9_999, through: slice, more: true, slices: [{ service: 'pplns', slice, receipts }] };
  };
  const pool: PlayedPool = new PlayedPool({ answers });
  const played = new Played(pool);
  played.share(1n);
  const [bad] = pool.close(ALL, 0) as unknown as [Record<string, unknown>];
  bad.network = 'none';
  await played.watch.check();
  await expect(played.watch.check()).rejects.toThrow('more receipts than are read in one round');
  expect(asked).toBeGreaterThan(10);
  // What was wrong with an answer is known before the next is asked for: so none is kept until the last has come.
  // Of one kind the first alarms are enough.
  expect(known).toEqual(known.map((_, i) => Math.min(i, 32)));
});

test('nothing that is kept or told grows with what the pool says', async () => {
  for (const slice of [LONG, Number.NaN, -1, 1e300, { toString: LONG }, null]) {
    const receipts = [{ service: 'pplns', slice, worker: LONG, boot: LONG, signature: LONG }, null, 7];
    const of = { service: 'pplns', slice, receipts, leaf: LONG, record: null };
    const through = 10 ** 6;
    const played = new Played(
      new PlayedPool({
        answers: () => ({ kept_from: LONG, newest: LONG, through, more: false, slices: [of, null] }),
      }),
    );
    for (let i = 0; i < 3; i++) await played.watch.check().catch(() => undefined);
    expect(JSON.stringify(played.watch.save()).length).toBeLessThan(100_000);
    expect(JSON.stringify(played.alarms).length).toBeLessThan(100_000);
  }
});

test('a pool that never shows the books of what it signed is reported, whatever it answers instead; silence is no answer', async () => {
  const refuses = () => {
    throw new Error('status 500');
  };
  for (const answer of [refuses, () => ({}), () => ({ through: 1e6, more: false, slices: [null] })]) {
    let isHiding = false;
    const pool = new PlayedPool({ booksPart: 50n, answers: () => (isHiding ? answer() : undefined) });
    const played = new Played(pool);
    await played.watch.check();
    isHiding = true;
    for (let i = 0; i < 24; i++) {
      played.now += SLICE_MILLIS;
      played.share(1_000n);
      for (const receipt of pool.close(ALL, played.now)) played.watch.received(receipt);
      await played.watch.check().catch(() => undefined);
    }
    expect(played.kinds()).toEqual(answer === refuses ? [] : ['books_hidden']);
    expect(played.warnings.join()).toContain('CANNOT BE CHECKED receipts');
  }
});

test('a pool that says that later slices are past signs no less for it', async () => {
  const first = { kept_from: 1, newest: 2_000_000_000, through: 2_000_000_000, more: false, slices: [] };
  const pool = new PlayedPool({
    signsPart: 50n,
    booksPart: 50n,
    answers: (url) => (url.searchParams.get('after') === '2000000000' ? first : undefined),
  });
  const played = new Played(pool);
  await mine(played, 24);
  expect(played.kinds()).toContain('receipts_less');
});

test('a pool names its API, and nothing else that the miner would fetch for it', () => {
  const key = new Uint8Array(1952);
  for (const api of ['', 'https://pool.example', 'http://10.0.0.1:28740/pool/'])
    expect(checkOffer({ key, api })).toMatchObject({ api });
  for (const api of [
    'http://192.168.1.1/reboot?',
    'http://192.168.1.1/reboot?x=',
    'http://router/#',
    'http://me:you@router/',
    'http://router/a?b#',
    'http://[::1',
    'http://',
    'https://a b',
  ])
    expect(() => checkOffer({ key, api }), api).toThrow('api must be a URL');
});

test('a pool that convicts itself in slice after slice fills no disk, and hides nothing of other kinds or pools', async () => {
  const directory = temporaryDirectory();
  const evidence = { format: EVIDENCE_FORMAT, pool_key: '', receipts: [], leaf: null, record: null } as Evidence;
  const write = (kind: string, slice: number, pool: string) =>
    writeEvidence(directory, { kind, slice: `pplns-${slice}`, pool }, evidence);
  for (let slice = 0; slice < 40; slice++) await write('books_less', slice, 'pool.example:28720');
  expect(readdirSync(directory)).toHaveLength(MOST_EVIDENCE);
  // The first ones stay, and are written again under their names.
  expect(await write('books_less', 0, 'pool.example:28720')).toMatch(/evidence-books-less-pplns-0-pool-example-28720/);
  expect(await write('two_books', 40, 'pool.example:28720')).toBeDefined();
  expect(await write('books_less', 40, 'other.example:28720')).toBeDefined();
  expect(readdirSync(directory)).toHaveLength(MOST_EVIDENCE + 2);
});

test('records that were signed are checked once they can be, whatever the pool answered before', async () => {
  let isFailing = true;
  const read: string[] = [];
  const lists = ({ pathname }: URL) => {
    if (isFailing && pathname.includes('/slices')) throw new Error('503');
    if (!isFailing) read.push(pathname);
    const terms = { network: 'development', address: 'pool', terms: { pplns: [], solo: [] } };
    return pathname.endsWith('/terms') ? terms : undefined;
  };
  const node = { addressChanges: () => Promise.reject(new Error('no such address')) };
  const played = new Played(new PlayedPool({ lists }), node as never);
  await mine(played, 3);
  isFailing = false;
  await played.watch.check();
  expect(read.filter((path) => path.endsWith('/slices/pplns'))).toHaveLength(3);
});

test('many alarms of one kind take no room from another, and none is long', async () => {
  const pool = new PlayedPool({
    booksPart: 50n,
    lists: ({ pathname }) =>
      pathname.endsWith('/terms')
        ? { network: 'development', address: `${addresses++}${LONG}`, terms: { pplns: [], solo: [] } }
        : undefined,
  });
  let addresses = 0;
  const played = new Played(pool);
  played.watch.pays('dsvc1own');
  await played.watch.check();
  played.share(1n);
  const [receipt] = pool.close(ALL, 0) as [Receipt];
  for (let slice = 0; slice < 1_000; slice++) played.watch.received({ ...receipt, network: 'none' as never, slice });
  for (let round = 0; round < 300; round++) await played.watch.check();
  expect(addresses).toBeGreaterThan(256);
  expect(JSON.stringify(played.watch.save()).length).toBeLessThan(100_000);
  const said = played.alarms.map(({ fields }) => Object.values(fields).map(String).join());
  expect(Math.max(...said.map((text) => text.length))).toBeLessThan(1_000);
  await mine(played, 3);
  expect(new Set(played.kinds())).toEqual(new Set(['receipt_bad', 'address_other', 'books_less']));
});

test('receipts of one sheet cost one verification, also where its signature is false', async () => {
  for (const isSigned of [true, false]) {
    const pool = new PlayedPool();
    const played = new Played(pool);
    played.isSigned = isSigned;
    await played.watch.check();
    played.share(1n);
    const [receipt] = pool.close(ALL, 0) as [Receipt];
    for (let index = 0; index < 1_000; index++) played.watch.received({ ...receipt, index });
    await played.watch.check();
    expect(played.verified).toBe(1);
    expect(played.kinds().includes('receipt_bad')).toBe(true);
  }
});

test('one made-up slice does not keep later lists from being judged', async () => {
  for (const slice of [2 ** 53 - 1, 1e300, -1, 'x/../..', null, {}]) {
    const lie: Lie = { proof: honest.proof(SLICE, VICTIM), evidence: honest.evidence(SLICE) };
    const { pool, node } = sourcesOf({
      ...lie,
      proof: { ...lie.proof, credit: { absent: { before: null, after: null } } },
    });
    const alarms: string[] = [];
    let round = 0;
    const watch = new ListWatch(lie.proof.address, {
      pool: async (path) => {
        if (!path.startsWith('slices/pplns?limit=50')) return pool(path);
        const made = [{ slice, credits: {} }];
        return { slices: round === 0 ? made : [...(round === 1 ? made : []), { slice: SLICE, credits: {} }] };
      },
      node,
      alarm: (kind) => void alarms.push(kind),
      note: () => undefined,
      wallMillis: Date.now,
      nowMillis: () => round * 60_000,
    });
    watch.works('pplns');
    for (; round < 4; round++) await watch.round().catch(() => undefined);
    expect(alarms, String(slice)).toContain('list_false');
  }
});
