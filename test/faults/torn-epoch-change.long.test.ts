/**
 * A node that is killed while it writes the last cut of an epoch, or the first of the next: the store's log ends anywhere in that cut. The cut is there as a whole or not
 * at all, and the node goes on to the same state roots as one that was never killed. Kills at random moments of a running process are in test/node/crash.slow.test.ts.
 */
import { cpSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { toHex } from '../../protocol/bytes.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { count, seed } from '../level.ts';
import { Bed } from '../node/bed.ts';
import { copyOpenStore } from '../open-store.ts';
import { randomOf } from '../random.ts';
import { evidenceOf, operationTransaction, registration } from '../staking/signed.ts';
import { temporaryDirectory } from '../temporary.ts';

const COIN = 100_000_000n;
const INTERVAL = 24;
const treasury = developmentKey(TREASURY);
const miner = developmentKey('miner').address;
const [bert, bertsKey, dora] = ['bert', 'bert consensus', 'dora'].map(developmentKey) as [
  ReturnType<typeof developmentKey>,
  ReturnType<typeof developmentKey>,
  ReturnType<typeof developmentKey>,
];
const bertId = validatorId(bertsKey.publicKey);

/** The log of the store: LevelDB has one at a time. */
function logOf(store: string): string {
  const logs = readdirSync(store).filter((name) => name.endsWith('.log'));
  expect(logs.length).toBe(1);
  return join(store, logs[0] as string);
}

test('killed at any byte of the cuts around an epoch change, the chain goes on as if it had not been', async () => {
  const random = randomOf(seed);
  const bed = await Bed.open({ genesis: { validators: 2, intervalCuts: INTERVAL } });
  const store = join(bed.directory, 'store');
  const stateRoot = (height: number): string => toHex(bed.node.chain.cut(height)?.header.stateRoot as Uint8Array);
  let spent = 0;
  const send = async (operation: StakingOperation, signer = dora): Promise<void> => {
    const spend = { key: treasury, spend: bed.treasury(spent++) };
    const sent = operationTransaction(bed.node.chain, spend, operation, { signer });
    expect((await bed.node.submitTransaction(sent)).status).toBe('accepted');
  };
  const delegate = async (): Promise<void> => {
    const owner = { owner: dora.address, rewardAddress: dora.address };
    for (let i = 0; i < 12; i++) await send({ name: 'bond', validator: bertId, ...owner, amount: 1_000n * COIN });
  };
  try {
    await send(registration(bed.node.chain, bertsKey, bert, 100_000n * COIN), bert);
    await bed.mine(miner);
    await bed.seal();
    await delegate();
    await bed.mine(miner);
    await bed.seal(2 * INTERVAL - 4);
    // The committee of epoch 2 is fixed by the next cut but one, which also slashes a validator and its delegators.
    await bed.reopen();
    await send(evidenceOf(bed.node.chain, bertId, bertsKey, { kind: 'precommit', height: 30, round: 1 }), treasury);
    await bed.seal();
    await bed.mine(miner);
    const first = 2 * INTERVAL - 1;
    expect(bed.node.chain.head().height).toBe(first - 1);
    const now = bed.now;
    const ends = [statSync(logOf(store)).size];
    for (let i = 0; i < 2; i++) {
      await bed.seal();
      ends.push(statSync(logOf(store)).size);
    }
    expect(bed.node.chain.supply().burned).toBeGreaterThanOrEqual(100_000n * COIN + 12n * 100n * COIN);
    const written = join(temporaryDirectory(), 'written');
    copyOpenStore(store, written);
    await bed.seal(2);
    const roots = [0, 1, 2, 3].map((i) => stateRoot(first + i));
    const [start, middle, end] = ends as [number, number, number];
    // The ends of records of the log and of its blocks of 32 KiB, bytes beside them, and any others.
    const edges = [start, start + 1, start + 7, middle - 1, middle, middle + 1, middle + 7, end - 1, end];
    for (let block = Math.ceil(start / 32_768) * 32_768; block < end; block += 32_768) edges.push(block, block + 3);
    for (let i = count({ full: 12, deep: 300 }); i > 0; i--) edges.push(start + random(end - start));
    for (const length of edges) {
      await bed.reopen(() => {
        rmSync(store, { recursive: true });
        cpSync(written, store, { recursive: true });
        truncateSync(logOf(store), length);
      });
      const whole = length >= end ? 2 : length >= middle ? 1 : 0;
      expect(`${length}: ${bed.node.chain.head().height}`).toBe(`${length}: ${first - 1 + whole}`);
      bed.now = now + 2_500 * whole;
      await bed.seal(4 - whole);
      expect([0, 1, 2, 3].map((i) => stateRoot(first + i))).toEqual(roots);
    }
  } finally {
    await bed.close();
  }
});
