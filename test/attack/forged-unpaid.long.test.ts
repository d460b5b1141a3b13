/**
 * `svc-pool verify-evidence` on files about credits that were not paid, which anybody may have written: of an honest pool none says that it does not pay, whatever threshold,
 * payments or lists the file names; and a pool that names transactions of others as its payments has not paid.
 */
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyEvidence } from '../../pool/evidence/verify-evidence.ts';
import { checkPoolProof } from '../../protocol/books/pool-proof.ts';
import { UNPAID_EVIDENCE_FORMAT } from '../../protocol/evidence/unpaid-evidence.ts';
import { addressOf, poolAddress, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { honest, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { nodeAnswers, poolAnswer } from '../protocol/books-sources.ts';
import { temporaryDirectory } from '../temporary.ts';

const proof = honest.proof(SLICE, VICTIM);
const checked = checkPoolProof(proof);
const CREDIT = checked.valid ? checked.credit : 0n;
const { address } = proof;
const PAID_HEIGHT = (SLICE + 1) * SLICE_CUTS + 100;
const [PAYMENT, OTHER] = ['aa'.repeat(48), 'bb'.repeat(48)];

const lists = { proof, evidence: honest.evidence(SLICE) };
const ledger = nodeAnswers(lists);

const [ID, NONE] = ['00'.repeat(48), '0'];
const CUT = {
  cut_id: ID,
  previous_id: ID,
  state_root: ID,
  validator_set_id: ID,
  registered_work: 0,
  executed_work: 0,
  transactions: 0,
  subsidy: NONE,
  fees: NONE,
};

/**
 * `newest`: the newest cut; each takes a minute. `payer`: who made the transaction that the pool lists as its payment. `says`: what the pool says of itself instead.
 * `rows`: what it lists beside the payment.
 */
type World = {
  paid: bigint;
  paidHeight: number;
  minimum: bigint;
  /** Thresholds of before; undefined if the pool does not say. */
  minimums?: readonly { amount: string; until_millis: number }[] | undefined;
  advanced?: bigint;
  resumed?: number;
  isPaused: boolean;
  newest: number;
  payer: string;
  says?: { address?: string; sliceCuts?: number };
  rows?: readonly object[];
  /** It does not list its payment, as after a fall of its database. */
  isForgetful?: boolean;
  /** Cuts by which its books are behind. */
  behind?: number;
  /** Routes that answer 429 the first time. */
  busy?: Set<string>;
};
const PAYING: World = {
  paidHeight: PAID_HEIGHT,
  paid: CREDIT,
  minimum: 1n,
  minimums: [],
  isPaused: false,
  newest: PAID_HEIGHT + 3_000,
  payer: poolAddress,
};

function poolSays(path: string, world: World): unknown {
  const {
    paid,
    paidHeight,
    minimum,
    minimums,
    advanced,
    resumed,
    isPaused,
    says,
    rows = [],
    isForgetful,
    behind = 0,
  } = world;
  if (path === 'terms') {
    const { address: own = poolAddress, sliceCuts = SLICE_CUTS } = says ?? {};
    const { terms, ...published } = lists.evidence.terms!;
    const changed = (list: typeof terms.pplns) => list.map((each) => ({ ...each, slice_cuts: sliceCuts }));
    const height = world.newest - behind;
    return { ...published, height, address: own, terms: { pplns: changed(terms.pplns), solo: changed(terms.solo) } };
  }
  if (path === 'pool') return { payouts: { interval_seconds: 60, paused: isPaused, resumed_millis: resumed } };
  if (path.startsWith('miners/'))
    return {
      payout_minimum: String(minimum),
      payout_minimums: minimums,
      ...(advanced && { advanced: String(advanced) }),
    };
  if (!path.startsWith('payments')) return poolAnswer(lists, path) ?? null;
  const row = { payout_id: '1', state: 'finalized', address, amount: String(paid), transaction_id: PAYMENT };
  return { payments: [...rows, ...(paid === 0n || isForgetful ? [] : [{ ...row, final_height: paidHeight }])] };
}

async function nodeSays(request: IncomingMessage, { paid, paidHeight, newest, payer }: World): Promise<unknown> {
  const url = new URL(request.url ?? '', 'http://node');
  const [, , route, name = ''] = url.pathname.split('/');
  if (url.pathname.endsWith('/cuts')) {
    const height = Number(url.searchParams.get('before') ?? newest + 1) - 1;
    const target = ledger.cuts({ before: height + 1 }).cuts[0]?.target ?? '00'.repeat(32);
    const cut = { ...CUT, height, target, finalized_at_millis: 1_800_000_000_000 + height * 60_000 };
    return { api_version: 1, finalized_height: newest, cuts: [cut] };
  }
  if (route === 'blocks') return ledger.block({ id: name });
  if (route === 'cuts') return ledger.cutTransactions({ height: Number(name) });
  let body = '';
  for await (const part of request) body += part;
  const { addresses, after_height: after } = JSON.parse(body) as { addresses: string[]; after_height: number };
  if (after < 0) return { api_version: 1, error: { code: 'bad_request', message: 'after_height' } };
  const change = {
    finalized_height: paidHeight,
    transaction_id: PAYMENT,
    amount: String(paid),
    source: 'regular',
    address: addresses[0],
    outpoint: { transaction_id: PAYMENT, output_index: 0 },
  };
  const rewards =
    addresses[0] === poolAddress
      ? ledger.addressChanges().changes.map((each) => ({
          ...change,
          ...each,
          outpoint: { transaction_id: each.transaction_id, output_index: 0 },
        }))
      : [];
  const received = addresses[0] === address ? [{ ...change, kind: 'received' }] : [];
  const spent = addresses[0] === payer ? [{ ...change, kind: 'spent' }] : [];
  const heights = { after_height: after, finalized_height: newest, indexed_height: newest };
  const changes = [...rewards, ...received, ...spent].filter((each) => each.finalized_height > after);
  return { api_version: 1, ...heights, changes };
}

async function judged(file: object, world: World): Promise<{ code: number; verdict: string; why?: string }> {
  const path = join(temporaryDirectory(), 'evidence.json');
  writeFileSync(path, JSON.stringify(file));
  const server = createServer(async (request, response) => {
    const [, asked] = (request.url ?? '').split('/pool/api/v1/');
    if (asked !== undefined && world.busy?.delete(asked.split('/')[0] as string)) {
      response.writeHead(429, { 'retry-after': '1' }).end();
      return;
    }
    const answer = asked === undefined ? await nodeSays(request, world) : poolSays(asked, world);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const said: string[] = [];
  const terminal = { out: (line: string) => void said.push(line), err: (line: string) => void said.push(line) };
  const values = { poolKey: undefined, poolApi: `${api}/pool`, nodeApi: api, json: true };
  const code = await verifyEvidence(path, values, terminal as never);
  server.closeAllConnections();
  server.close();
  return { code, ...JSON.parse(said.join('')) };
}

const fileOf = (threshold: bigint) => ({
  format: UNPAID_EVIDENCE_FORMAT,
  address,
  threshold: String(threshold),
  owed: String(CREDIT),
  at_millis: 1,
  for_hours: 24,
  credits: [{ service: 'pplns', slice: SLICE, amount: String(CREDIT) }],
  payments: [],
});
const lies = { payments: [{ payout_id: '1', amount: '0' }] };

const TOO_YOUNG = 'none of the lists is old enough by the terms that the pool publishes';

test('no file makes an honest pool one that does not pay', async () => {
  // A file's own amounts, and a threshold of nothing.
  expect(await judged({ ...fileOf(1n), ...lies }, PAYING)).toMatchObject({ code: 1, verdict: 'paid' });
  expect(await judged(fileOf(0n), PAYING)).toMatchObject({ code: 1, verdict: 'paid' });
  // Credits of an hour ago, and a balance below the account's threshold.
  const young = { ...PAYING, paid: 0n, newest: PAID_HEIGHT + 60 };
  expect(await judged(fileOf(1n), young)).toMatchObject({ code: 1, verdict: 'unchecked', why: TOO_YOUNG });
  const small = await judged(fileOf(1n), { ...PAYING, paid: 0n, minimum: CREDIT + 1n });
  expect(small).toMatchObject({
    code: 1,
    verdict: 'unchecked',
    why: expect.stringContaining('pays this address from'),
  });
  expect(await judged(fileOf(1n), { ...PAYING, paid: 0n, isPaused: true })).toMatchObject({ verdict: 'unchecked' });
  const more = { ...fileOf(1n), credits: [{ service: 'pplns', slice: SLICE, amount: '9' }] };
  expect(await judged(more, { ...PAYING, paid: 0n })).toMatchObject({ code: 1, verdict: 'unchecked' });
  const format = UNPAID_EVIDENCE_FORMAT;
  for (const broken of [{ ...fileOf(1n), credits: null }, { ...fileOf(1n), threshold: -1 }, { format }])
    expect(await judged(broken, PAYING)).toMatchObject({ code: 1, verdict: 'malformed' });
});

test('a pool that does not pay, or names what others paid, is shown', async () => {
  expect(await judged(fileOf(1n), { ...PAYING, paid: 0n })).toMatchObject({ code: 5, verdict: 'unpaid' });
  expect(await judged(fileOf(1n), { ...PAYING, payer: OTHER })).toMatchObject({ code: 5, verdict: 'unpaid' });
  // A payment of before the list could be made pays something else.
  expect(await judged(fileOf(1n), { ...PAYING, paidHeight: SLICE * SLICE_CUTS })).toMatchObject({ code: 5 });
});

test('a pool that lies about its address or its slices has not paid for it', async () => {
  // Somebody else paid this address, and the pool says that it is that one.
  const other = { ...PAYING, payer: addressOf(1), says: { address: addressOf(1) } };
  expect(await judged(fileOf(1n), other)).toMatchObject({
    code: 1,
    verdict: 'unchecked',
    why: expect.stringContaining(`list pplns/${SLICE}`),
  });
  const unpaid = { ...PAYING, paid: 0n };
  const long = { ...unpaid, says: { sliceCuts: 1_000_000 } };
  expect(await judged(fileOf(1n), long)).toMatchObject({ code: 1, verdict: 'unchecked', why: TOO_YOUNG });
  const longer = { ...unpaid, says: { sliceCuts: SLICE_CUTS + 1 } };
  expect(await judged(fileOf(1n), longer)).toMatchObject({ why: expect.stringContaining('is false (terms)') });
  // Rows of cuts that pay nobody, which must not keep the rest from being added up.
  const row = { payout_id: '2', state: 'finalized', address, amount: '9', transaction_id: OTHER };
  for (const height of [0, 2 ** 52])
    expect(await judged(fileOf(1n), { ...unpaid, rows: [{ ...row, final_height: height }] })).toMatchObject({
      code: 5,
    });
});

test('an account that lowers its own threshold and asks before the next round does not convict an honest pool', async () => {
  const owing = { ...PAYING, paid: 0n };
  const now = 1_800_000_000_000 + owing.newest * 60_000;
  const lowered = (hours: number) => [{ amount: String(2n * CREDIT), until_millis: now - hours * 3_600_000 }];
  expect(await judged(fileOf(1n), owing)).toMatchObject({ code: 5, verdict: 'unpaid' });
  expect(await judged(fileOf(1n), { ...owing, minimums: lowered(1) })).toMatchObject({
    code: 1,
    verdict: 'unchecked',
    why: expect.stringContaining(`from ${2n * CREDIT} atoms on, or did in that time`),
  });
  // A day and two rounds later the pool has had its time.
  expect(await judged(fileOf(1n), { ...owing, minimums: lowered(25) })).toMatchObject({ code: 5, verdict: 'unpaid' });
  // A pool of an earlier release does not say what held before: that is unread, and no lie.
  expect(await judged(fileOf(1n), { ...owing, minimums: undefined })).toMatchObject({ code: 1, verdict: 'unchecked' });
});

test('an account that was paid before its income was lost does not convict an honest pool with its later lists alone', async () => {
  const before = {
    payout_id: '0',
    state: 'finalized',
    address,
    amount: String(CREDIT),
    transaction_id: 'f0'.repeat(48),
  };
  const owing = { ...PAYING, paid: 0n, rows: [{ ...before, final_height: 1 }] };
  expect(await judged(fileOf(1n), { ...owing, advanced: CREDIT, rows: [] })).toMatchObject({ code: 5 });
  expect(await judged(fileOf(1n), { ...owing, advanced: CREDIT - 1n })).toMatchObject({ code: 5, verdict: 'unpaid' });
  expect(await judged(fileOf(1n), { ...owing, advanced: CREDIT })).toMatchObject({
    code: 1,
    verdict: 'unchecked',
    why: expect.stringContaining(`once paid it ${CREDIT} atoms more than it had credited`),
  });
});

test('a pool that lists a payment no more, because its database fell back, is not convicted: the ledger has it', async () => {
  expect(await judged(fileOf(1n), { ...PAYING, isForgetful: true })).toMatchObject({
    code: 1,
    verdict: 'unchecked',
    why: expect.stringContaining(`payments of ${CREDIT} atoms that the pool does not list`),
  });
  // Nor does one that catches up know yet what it once paid too much.
  const late = { ...PAYING, paid: 0n, behind: 241 };
  expect(await judged(fileOf(1n), late)).toMatchObject({ code: 1, why: expect.stringContaining('241 cuts behind') });
  expect(await judged(fileOf(1n), { ...late, behind: 240 })).toMatchObject({ code: 5 });
  // What others paid is no payment of the pool, and neither is one of before.
  for (const more of [{ payer: OTHER }, { paidHeight: SLICE * SLICE_CUTS }])
    expect(await judged(fileOf(1n), { ...PAYING, isForgetful: true, ...more })).toMatchObject({ code: 5 });
});

test('a pool that pays again after a long pause has a day for it', async () => {
  const owing = { ...PAYING, paid: 0n };
  const hoursAgo = (hours: number): number => 1_800_000_000_000 + owing.newest * 60_000 - hours * 3_600_000;
  expect(await judged(fileOf(1n), { ...owing, resumed: hoursAgo(1) })).toMatchObject({ code: 1, verdict: 'unchecked' });
  expect(await judged(fileOf(1n), { ...owing, resumed: hoursAgo(25) })).toMatchObject({ code: 5, verdict: 'unpaid' });
});

test('a pool that is busy is waited for, and no file is given up for it', async () => {
  const owing = { ...PAYING, paid: 0n };
  const busy = new Set(['proofs', 'slices']);
  expect(await judged(fileOf(1n), { ...owing, busy })).toMatchObject({ code: 5, verdict: 'unpaid' });
  expect(busy.size).toBe(0);
});
