/**
 * `svc-pool verify-evidence` on files that anybody may have written: none crashes it, none without receipts of the pool convicts, and a file that names its own key does
 * not convict the pool, whose key it may not be.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type VerifyEvidenceValues, verifyEvidence } from '../../pool/evidence/verify-evidence.ts';
import { poolListId } from '../../protocol/books/pool-proof.ts';
import { LIST_EVIDENCE_FORMAT, listHead } from '../../protocol/evidence/list-evidence.ts';
import { EVIDENCE_FORMAT, type Evidence } from '../../protocol/evidence/receipt-evidence.ts';
import { addressOf } from '../../vectors/generate/honest-books.ts';
import { honest, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { temporaryDirectory } from '../temporary.ts';

const vectors = JSON.parse(readFileSync(new URL('../../vectors/receipts.json', import.meta.url), 'utf8')) as {
  evidence: { evidence: Evidence; verdict: string }[];
};
const convicting = vectors.evidence.find(({ verdict }) => verdict === 'convicts')?.evidence as Evidence;

async function judged(text: string, values: Partial<VerifyEvidenceValues> = {}) {
  const file = join(temporaryDirectory(), 'evidence.json');
  writeFileSync(file, text);
  const said: string[] = [];
  const terminal = { out: (line: string) => void said.push(line), err: (line: string) => void said.push(line) };
  const all = { poolKey: undefined, poolApi: undefined, nodeApi: undefined, json: false, ...values };
  const code = await verifyEvidence(file, all, terminal as never);
  return { code, text: said.join('') };
}

/** A pool that publishes a key. */
async function publishing<T>(
  pool_key: string,
  work: (api: string) => Promise<T>,
  slices: readonly object[] = [],
): Promise<T> {
  const server = createServer((request, response) =>
    response.end(JSON.stringify(request.url?.endsWith('/terms') ? { pool_key } : { slices })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('a file that names its own key convicts the holder of that key only', async () => {
  const text = JSON.stringify(convicting);
  const { pool_key: key } = convicting;
  expect(await judged(text, { poolKey: key })).toMatchObject({ code: 0, text: expect.stringContaining('CONVICTS') });
  // Anybody can make a key and sign what he likes with it.
  const alone = await judged(text);
  expect(alone).toMatchObject({
    code: 3,
    text: expect.stringContaining('whether that is the pool’s key is not known'),
  });
  expect(alone.text).not.toContain('CONVICTS the pool');
  expect(await publishing(key, (poolApi) => judged(text, { poolApi }))).toMatchObject({ code: 0 });
  const other = await publishing('00'.repeat(1952), (poolApi) => judged(text, { poolApi }));
  expect(other).toMatchObject({ code: 3, text: expect.stringContaining('The pool publishes another key now') });
  expect(JSON.parse((await judged(text, { json: true })).text)).toMatchObject({
    key_given: false,
    verdict: 'convicts',
  });
  expect(await judged(text, { poolKey: '00'.repeat(1952) })).toMatchObject({ code: 1 });
});

test('the slices of a pool whose key did not sign the file are not compared with it', async () => {
  const { pool_key, receipts, leaf, record } = convicting;
  const first = receipts[0] as (typeof receipts)[number];
  const from = { from_slice: 0, slice_cuts: 240, window_thousandths: 8000, fee_ppm: 10_000 };
  const terms = { network: first.network, address: 'another', terms: { pplns: [from], solo: [from] } };
  const slices = [{ ...record, slice: first.slice, service: first.service, chain: 'ab'.repeat(48) }];
  const asked = async (key: string, shown: object[], values: Partial<VerifyEvidenceValues>) => {
    const paths: string[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url ?? '');
      const answer = request.url?.endsWith('/terms') ? { ...terms, pool_key: key } : { slices: shown, commitments: [] };
      response.end(JSON.stringify(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const poolApi = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const text = JSON.stringify({ ...convicting, leaf });
      const said = await judged(text, { poolApi, nodeApi: 'http://127.0.0.1:9', json: true, ...values });
      const { published, ledger } = JSON.parse(said.text);
      return { published, ledger, words: (await judged(text, { poolApi, ...values })).text, paths };
    } finally {
      server.closeAllConnections();
      server.close();
    }
  };
  const other = '5a'.repeat(1952);
  // The key of the file, that of the pool which is asked, and none.
  for (const values of [{}, { poolKey: pool_key }, { poolKey: other }])
    for (const shown of [slices, []]) {
      const said = await asked(other, shown, values);
      expect(said).toMatchObject({ published: { record: null, hidden: false }, ledger: null });
      expect(said.words).not.toMatch(/another record|no record of this slice|leaves out|ledger/);
      expect(said.words).toMatch(/another key|not signed with the pool’s key/);
      expect(said.paths.filter((path) => !path.endsWith('/terms'))).toEqual([]);
    }
  // Its own key: its own slices.
  expect(await asked(pool_key, slices, {})).toMatchObject({ published: { record: false } });
});

test('a file without receipts, and one that lacks the leaf, convict nobody', async () => {
  const { pool_key, receipts } = convicting;
  const bare = { format: EVIDENCE_FORMAT, pool_key, leaf: null, record: null };
  for (const values of [
    {},
    { poolKey: pool_key },
    { json: true },
    { poolApi: 'http://127.0.0.1:1', nodeApi: 'http://127.0.0.1:1' },
  ])
    for (const changes of [
      { receipts: [] },
      {},
      { receipts: null },
      { receipts: 7 },
      { receipts: receipts.slice(0, 1) },
    ]) {
      const { code } = await judged(JSON.stringify({ ...bare, ...changes }), values);
      expect(code, JSON.stringify(Object.keys(changes))).toBe(1);
    }
  const signed = await judged(JSON.stringify({ ...bare, receipts: receipts.slice(0, 1) }), { poolKey: pool_key });
  expect(signed.text).toContain('it shows only that the pool signed the receipts');
});

test('whatever a field contains, a line says that it is no evidence', async () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const values = [
    'null',
    '7',
    '"x"',
    '[]',
    '{}',
    '[null]',
    '{"toString":1,"valueOf":1}',
    '{"__proto__":{"x":1}}',
    deep,
    '1e400',
    '{"length":1}',
    `"${'f'.repeat(100_000)}"`,
    '"\\u001b[2J"',
    'true',
    '-1',
  ];
  const fields = ['format', 'pool_key', 'receipts', 'leaf', 'record'];
  const inner = [
    'network',
    'service',
    'slice',
    'address',
    'signature',
    'siblings',
    'work',
    'account_work',
    'index',
    'worker',
  ];
  const base = JSON.stringify(convicting);
  const texts = [
    ...values,
    ...fields.flatMap((field) =>
      values.map((value) => JSON.stringify({ ...convicting, [field]: 'HERE' }).replace('"HERE"', () => value)),
    ),
    ...inner.flatMap((field) =>
      values.map((value) =>
        JSON.stringify({ ...convicting, receipts: [{ ...convicting.receipts[0], [field]: 'HERE' }] }).replace(
          '"HERE"',
          () => value,
        ),
      ),
    ),
  ].filter((text) => text !== base);
  await publishing('00', async (poolApi) => {
    for (const [i, text] of texts.entries()) {
      const { code, text: said } = await judged(text, i % 2 === 0 ? { poolApi, nodeApi: poolApi } : {});
      expect([1, 3], text.slice(0, 200)).toContain(code);
      expect(said.length, text.slice(0, 200)).toBeLessThan(5_000);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
      expect(said).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
    }
  });
});

test('a pool that answers without the records of a slice that it signed: that is said, and is not called unchecked', async () => {
  const from = { from_slice: 0, slice_cuts: 240, window_thousandths: 8000, fee_ppm: 10_000 };
  const terms = { address: 'pool', pool_key: convicting.pool_key, terms: { pplns: [from], solo: [from] } };
  const server = createServer((request, response) =>
    response.end(JSON.stringify(request.url?.endsWith('/terms') ? terms : { slices: [], commitments: [] })),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const poolApi = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const values = { poolApi, nodeApi: 'http://127.0.0.1:9', poolKey: convicting.pool_key };
    const { text } = await judged(JSON.stringify(convicting), values);
    expect(text).toContain('leaves out records that it must have');
    expect(text).not.toContain('could not be checked');
    expect((await judged(JSON.stringify(convicting), { poolApi })).text).toContain('shows no record of this slice');
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

/** Two lists of one slice, of solo, where nothing but the finder differs: each is a list by itself. */
function twoLists() {
  const base = listHead(honest.proof(SLICE, VICTIM));
  const solo = { ...base, service: 'solo', window: [], window_work: '1' } as const;
  const as = (finder: number) => {
    const blocks = solo.blocks.map((block) => ({ ...block, finder: addressOf(finder) }));
    const head = { ...solo, blocks, credit_root: `${finder}`.repeat(96) };
    return { ...head, list_id: poolListId(head) };
  };
  const shown = (head: ReturnType<typeof as>) => ({ list_id: head.list_id, credit_root: head.credit_root, head });
  const [before, now] = [shown(as(1)), shown(as(2))];
  return { format: LIST_EVIDENCE_FORMAT, service: 'solo', slice: SLICE, before, now };
}

test('two credit lists of one slice: what each says, which one the pool publishes, and that nobody signed them', async () => {
  const evidence = twoLists();
  const text = JSON.stringify(evidence);
  expect(await judged(text)).toMatchObject({ code: 4, text: expect.stringContaining('two different credit lists') });
  expect((await judged(text)).text).not.toContain('CONVICTS');
  const published = async (root: string) => {
    const record = { slice: SLICE, credits: { root } };
    const said = await publishing('', (poolApi) => judged(text, { poolApi, json: true }), [record]);
    return JSON.parse(said.text) as object;
  };
  expect(await published(evidence.before.credit_root)).toEqual({ verdict: 'two_lists', published: 'before' });
  expect(await published(evidence.now.credit_root)).toEqual({ verdict: 'two_lists', published: 'now' });
  expect(await published('ff'.repeat(48))).toEqual({ verdict: 'two_lists', published: 'neither' });
  const { before, now } = evidence;
  const forged = [
    { ...evidence, now: before },
    { ...evidence, before: { ...before, head: { ...before.head, reward: '1' } } },
    { ...evidence, now: { ...now, head: { ...now.head, blocks: null } } },
    { ...evidence, now: { ...now, list_id: null } },
    { ...evidence, service: 'pplns' },
    { ...evidence, before: null },
    { ...evidence, slice: '18' },
  ];
  for (const each of forged)
    expect((await judged(JSON.stringify(each))).code, JSON.stringify(each).slice(0, 90)).toBe(1);
});
