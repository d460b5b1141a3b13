/**
 * `svc-pool verify-evidence` on files about credits that were not paid, which anybody may have written: of an honest pool none says that it does not pay, whatever threshold,
 * payments or lists the file names; and a pool that names transactions of others as its payments has not paid.
 */
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyEvidence } from '../../pool/verify-evidence.ts';
import { checkPoolProof } from '../../protocol/pool-proof.ts';
import { UNPAID_EVIDENCE_FORMAT } from '../../protocol/unpaid-evidence.ts';
import { poolAddress, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { honest, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { temporaryDirectory } from '../temporary.ts';

const proof = honest.proof(SLICE, VICTIM);
const checked = checkPoolProof(proof);
const CREDIT = checked.valid ? checked.credit : 0n;
const { address } = proof;
const PAID_HEIGHT = (SLICE + 1) * SLICE_CUTS + 100;
const [PAYMENT, OTHER] = ['aa'.repeat(48), 'bb'.repeat(48)];

const [ID, NONE] = ['00'.repeat(48), '0'];
const CUT = {
  ...{ cut_id: ID, previous_id: ID, state_root: ID, validator_set_id: ID, target: '00'.repeat(32) },
  ...{ registered_work: 0, executed_work: 0, transactions: 0, subsidy: NONE, fees: NONE },
};

/** `newest`: the newest cut; each takes a minute. `payer`: who made the transaction that the pool lists as its payment. */
type World = { paid: bigint; paidHeight: number; minimum: bigint; isPaused: boolean; newest: number; payer: string };
const PAYING: World = {
  paidHeight: PAID_HEIGHT,
  paid: CREDIT,
  minimum: 1n,
  isPaused: false,
  newest: PAID_HEIGHT + 3_000,
  payer: poolAddress,
};

function poolSays(path: string, { paid, paidHeight, minimum, isPaused }: World): unknown {
  if (path === 'terms')
    return { address: poolAddress, terms: { pplns: [{ from_slice: 0, slice_cuts: SLICE_CUTS }], solo: [] } };
  if (path === 'pool') return { payouts: { interval_seconds: 60, paused: isPaused } };
  if (path.startsWith('miners/')) return { payout_minimum: String(minimum) };
  if (path.startsWith('proofs/')) return path.startsWith(`proofs/pplns/${SLICE}?`) ? proof : null;
  const row = { payout_id: '1', state: 'finalized', address, amount: String(paid), transaction_id: PAYMENT };
  return { payments: paid === 0n ? [] : [{ ...row, final_height: paidHeight }] };
}

async function nodeSays(request: IncomingMessage, { paid, paidHeight, newest, payer }: World): Promise<unknown> {
  const url = new URL(request.url ?? '', 'http://node');
  if (url.pathname.endsWith('/cuts')) {
    const height = Number(url.searchParams.get('before') ?? newest + 1) - 1;
    const cut = { ...CUT, height, finalized_at_millis: 1_800_000_000_000 + height * 60_000 };
    return { api_version: 1, finalized_height: newest, cuts: [cut] };
  }
  let body = '';
  for await (const part of request) body += part;
  const { addresses, after_height: after } = JSON.parse(body) as { addresses: string[]; after_height: number };
  const change = {
    ...{ finalized_height: paidHeight, transaction_id: PAYMENT, amount: String(paid), source: 'regular' },
    ...{ address: addresses[0], outpoint: { transaction_id: PAYMENT, output_index: 0 } },
  };
  const received = addresses[0] === address ? [{ ...change, kind: 'received' }] : [];
  const spent = addresses[0] === payer ? [{ ...change, kind: 'spent' }] : [];
  const heights = { after_height: after, finalized_height: newest, indexed_height: newest };
  return { api_version: 1, ...heights, changes: after < paidHeight ? [...received, ...spent] : [] };
}

async function judged(file: object, world: World): Promise<{ code: number; verdict: string; why?: string }> {
  const path = join(temporaryDirectory(), 'evidence.json');
  writeFileSync(path, JSON.stringify(file));
  const server = createServer(async (request, response) => {
    const [, asked] = (request.url ?? '').split('/pool/api/v1/');
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
  ...{ format: UNPAID_EVIDENCE_FORMAT, address, threshold: String(threshold), owed: String(CREDIT) },
  ...{
    at_millis: 1,
    for_hours: 24,
    credits: [{ service: 'pplns', slice: SLICE, amount: String(CREDIT) }],
    payments: [],
  },
});
const lies = { payments: [{ payout_id: '1', amount: '0' }] };

test('no file makes an honest pool one that does not pay', async () => {
  // A file's own amounts, and a threshold of nothing.
  expect(await judged({ ...fileOf(1n), ...lies }, PAYING)).toMatchObject({ code: 1, verdict: 'paid' });
  expect(await judged(fileOf(0n), PAYING)).toMatchObject({ code: 1, verdict: 'paid' });
  // Credits of an hour ago, and a balance below the account's threshold.
  const young = { ...PAYING, paid: 0n, newest: PAID_HEIGHT + 60 };
  expect(await judged(fileOf(1n), young)).toMatchObject({ code: 1, verdict: 'paid' });
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
