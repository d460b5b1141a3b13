/**
 * What `npm start -- --validators 4` runs, as processes: four validators in nodes of their own, wallet, pool and miner at the first. One of the other validators is killed with kill -9 while shares
 * are found. No share is lost, rewards are paid, and every node has the same cuts and the same state.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import type { MinerDocument } from '../../pool/api/documents.ts';
import { toHex } from '../../protocol/bytes.ts';
import { readFigures } from '../../stack/figures.ts';
import { url } from '../../stack/parts.ts';
import { MINED_BLOCK, readJson, type StackFixture, startStack } from './stack-fixture.ts';

const VALIDATORS = 4;
let stack: StackFixture;
beforeAll(async () => {
  stack = await startStack({ validators: VALIDATORS, pace: { cutMillis: 120 }, blockWork: MINED_BLOCK });
});
afterAll(() => stack?.stop());

type MinerStats = { readonly shares: { readonly accepted: number } };
const minerStats = () => readJson<MinerStats>(`${url(stack.ports.minerApi)}/v1/stats`);
const figures = async () => (await readFigures(stack.webUrl)) ?? { shares: 0n, blocksPaid: 0 };

/** Identifier and state root of every cut, from the store of a node that has ended. */
async function cutsOf(directory: string): Promise<string[]> {
  const store = await LedgerStore.open(join(directory, 'store'));
  const cuts = Array.from({ length: store.state().height + 1 }, (_, height) => {
    const cut = store.cut(height);
    return cut === undefined ? 'missing' : `${toHex(cut.cutId)} ${toHex(cut.header.stateRoot)}`;
  });
  await store.close();
  return cuts;
}

test('pool and miner at one of four validators, another of which is killed: no share lost, rewards paid, one state', async () => {
  const address = await stack.startMiner();
  await expect.poll(async () => (await figures()).shares).toBeGreaterThan(0n);
  await stack.kill('validator-2');
  const before = (await figures()).shares;
  await expect.poll(async () => (await figures()).shares).toBeGreaterThan(before);
  await stack.startAgain('validator-2');
  await expect.poll(async () => (await figures()).blocksPaid).toBeGreaterThan(0);

  const { shares } = await minerStats();
  await stack.stopPart('miner');
  expect(shares.accepted).toBeGreaterThan(0);
  // Whatever the pool called accepted comes into its books.
  const booked = async () => (await readJson<MinerDocument>(`${stack.webUrl}/api/v1/miners/${address}`)).accepted;
  await expect.poll(booked).toBeGreaterThanOrEqual(shares.accepted);
  expect(stack.ended).toEqual([]);

  for (const name of ['pool', 'wallet']) await stack.stopPart(name);
  const others = Array.from({ length: VALIDATORS - 1 }, (_, i) => i + 1);
  await Promise.all(['node', ...others.map((i) => `validator-${i}`)].map((name) => stack.stopPart(name)));
  const chains = await Promise.all(
    [stack.files.node, ...others.map((i) => join(stack.files.validators, String(i)))].map(cutsOf),
  );
  const lowest = Math.min(...chains.map((chain) => chain.length));
  expect(lowest).toBeGreaterThan(20);
  for (const chain of chains) expect(chain.slice(0, lowest)).toEqual((chains[0] as string[]).slice(0, lowest));
});
