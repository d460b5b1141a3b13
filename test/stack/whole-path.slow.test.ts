/**
 * The whole path of the money with real processes: a share becomes a block, a reward on the chain, a credit, a payout and a
 * finalized transaction in the miner's own wallet. Mining then moves to a bridge (a chain without blocks carries no
 * payouts), so that the pool's books come to rest and every sum can be compared to the atom.
 */

import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type {
  BlocksDocument,
  CreditsDocument,
  MinerDocument,
  PaymentsDocument,
  PoolBlock,
} from '../../pool/api/documents.ts';
import type { OperatorStatus } from '../../pool/api/operator/operator-documents.ts';
import { auditPublic } from '../../pool/audit/public.ts';
import { newerAnswers } from '../../pool/audit/public-reads.ts';
import { parseCoins } from '../../protocol/amount.ts';
import { createApiClient } from '../../protocol/api/client.ts';
import type { AddressBalance, BlockDocument } from '../../protocol/api/documents.ts';
import { gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { judgeProof } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import { walletPart } from '../../stack/parts.ts';
import { RunningPart } from '../../stack/process.ts';
import { MINER_ADDRESS } from '../miner/pool-fixture.ts';
import { until } from '../until.ts';
import { MINED_BLOCK, readJson, type StackFixture, stackPorts, startStack } from './stack-fixture.ts';

let stack: StackFixture;
let address: string;

beforeAll(async () => {
  stack = await startStack({ blockWork: MINED_BLOCK, pace: { cutMillis: 200 }, poolWords: ['--start-work', '8000'] });
  address = await stack.startMiner();
});
afterAll(() => stack?.stop());

const api = <T>(path: string) => readJson<T>(`${stack.webUrl}/api/v1/${path}`);
const sum = (amounts: readonly (string | null)[]): bigint =>
  amounts.reduce((total, amount) => total + BigInt(amount ?? '0'), 0n);

/**
 * Asks until the answer is good; what the API refuses meanwhile (an address it does not know yet) is no answer. Two questions a
 * second: with more of them the pool would have to refuse some.
 */
async function once<T>(read: () => Promise<T>, good: (value: T) => boolean): Promise<T> {
  let last: T | Error | undefined;
  const look = async () => {
    last = await read().catch((error: Error) => error);
    return last instanceof Error || !good(last) ? undefined : { value: last };
  };
  return (await until(look, { everyMillis: 500, seen: () => last })).value;
}

/** Every page of a list. */
async function all<T extends { readonly next_cursor?: string | undefined }, R>(
  path: string,
  of: (page: T) => readonly R[],
): Promise<R[]> {
  const rows: R[] = [];
  for (let cursor = ''; ; ) {
    const page = await api<T>(`${path}${path.includes('?') ? '&' : '?'}limit=100${cursor}`);
    rows.push(...of(page));
    if (page.next_cursor === undefined) return rows;
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

const blocks = () => all<BlocksDocument, PoolBlock>('blocks', (page) => page.blocks);
/** How many have an end still to come. */
async function openBlocks(): Promise<number> {
  let open = 0;
  for (const state of ['found', 'accepted', 'registered', 'held'])
    open += (await api<BlocksDocument>(`blocks?state=${state}&limit=1`)).blocks.length;
  return open;
}

const credits = () =>
  all<CreditsDocument, CreditsDocument['credits'][number]>(`miners/${address}/credits`, (page) => page.credits);
const payments = () =>
  all<PaymentsDocument, PaymentsDocument['payments'][number]>(`payments?address=${address}`, (page) => page.payments);

async function operatorStatus(): Promise<OperatorStatus> {
  const token = (await readFile(`${stack.files.pool}/operator.token`, 'utf8')).trim();
  const answer = await fetch(`${stack.webUrl}/api/v1/operator/status`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return (await answer.json()) as OperatorStatus;
}

/** The miner's wallet as a daemon of its own, asked over JSON-RPC. */
async function minerWalletBalance(): Promise<{ balance: string; received: string[] }> {
  const file = stack.files.minerWallet;
  const ports = { ...stack.ports, wallet: (await stackPorts()).wallet };
  const part = walletPart(stack.data, ports);
  const daemon = new RunningPart({
    ...part,
    words: part.words.map((word) => (word === stack.files.poolWallet ? file : word)),
  });
  try {
    await daemon.ready(new AbortController().signal);
    const token = (await readFile(`${file}.token`, 'utf8')).trim();
    const call = async <T>(method: string, params: object): Promise<T> => {
      const answer = await fetch(`http://127.0.0.1:${ports.wallet}/v1/rpc`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
      return ((await answer.json()) as { result: T }).result;
    };
    await once(
      () => call<{ caught_up: boolean }>('status', {}),
      (status) => status.caught_up,
    );
    const { balance } = await call<{ balance: string }>('balance', {});
    const { payments: received } = await call<{ payments: { transaction: string }[] }>('received', {
      since_height: 0,
    });
    return { balance, received: received.map((payment) => payment.transaction) };
  } finally {
    await daemon.stop();
  }
}

test('a share becomes a block, a reward, a credit, a payout and money in the miner’s wallet, to the atom', async () => {
  const miner = () => api<MinerDocument>(`miners/${address}`);
  await once(miner, ({ accepted }) => accepted > 0);
  await once(
    () => api<BlocksDocument>('blocks?limit=10'),
    (page) => page.blocks.length >= 4,
  );
  await stack.stopPart('miner');
  await stack.startStranger(MINER_ADDRESS);

  const done = (found: readonly PoolBlock[]) =>
    found.every(({ state, credited }) => state === 'expired' || state === 'refused' || (state === 'paid' && credited));
  await once(openBlocks, (open) => open === 0);
  const found = await once(blocks, done);
  const account = await once(
    miner,
    ({ balance, in_flight, paid }) => balance === '0' && in_flight === '0' && BigInt(paid) > 0n,
  );

  const paid = found.filter((block) => block.state === 'paid');
  expect(paid.length).toBeGreaterThan(0);
  for (const block of paid.slice(0, 20)) {
    const onChain = await readJson<BlockDocument>(`${stack.apiUrl}/v1/blocks/${block.block_id}`);
    expect(onChain.reward).toMatchObject({ state: 'paid', amount: block.reward });
  }

  const lists = await credits();
  const rewards = sum(paid.map(({ reward }) => reward));
  expect(sum(lists.map(({ reward }) => reward))).toBe(rewards);
  const node = createApiClient({ baseUrl: stack.apiUrl }, apiClientDependencies());
  let fees = 0n;
  for (const credit of lists) {
    const proof = await api<PoolProof>(`proofs/${credit.service}/${credit.slice}?address=${address}`);
    const evidence = await gatherEvidence(proof, { pool: api, node });
    expect(judgeProof(proof, evidence)).toMatchObject({ verdict: 'proven', credit: BigInt(credit.amount) });
    expect(sum(proof.blocks.map(({ reward }) => reward))).toBe(BigInt(credit.reward));
    expect(BigInt(proof.credited) + BigInt(proof.fee)).toBe(BigInt(credit.reward));
    fees += BigInt(proof.fee);
  }
  const credited = sum(lists.map(({ amount }) => amount));
  expect(credited + fees).toBe(rewards);

  const paidOut = await payments();
  expect(new Set(paidOut.map(({ state }) => state))).toEqual(new Set(['finalized']));
  expect(sum(paidOut.map(({ amount }) => amount))).toBe(credited);
  expect(BigInt(account.paid)).toBe(credited);
  // Nothing is to be paid any more.
  await Promise.all(['stranger', 'bridge'].map((part) => stack.stopPart(part)));

  // What anybody can audit: every list, every commitment that the wallet really wrote to the ledger, every payment.
  const report = await auditPublic({ pool: api, node }, newerAnswers);
  expect(report.findings).toEqual([]);
  expect(report.commitments).toBe(new Set(paidOut.map(({ payout_id }) => payout_id)).size);
  expect(report.lists).toMatchObject({ proven: lists.length, false: 0 });

  const { sheet } = await operatorStatus();
  expect(sheet).toMatchObject({ rewards: rewards.toString(), paid: credited.toString(), balances: '0', gap: '0' });

  const onChain = await readJson<AddressBalance>(`${stack.apiUrl}/v1/address/${address}/balance`);
  expect(BigInt(onChain.balance)).toBe(credited);
  const wallet = await minerWalletBalance();
  expect(parseCoins(wallet.balance)).toBe(credited);
  expect(new Set(wallet.received)).toEqual(new Set(paidOut.map(({ transaction_id }) => transaction_id)));
});
