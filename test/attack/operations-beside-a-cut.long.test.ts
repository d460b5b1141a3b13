/** Staking operations whose signatures are checked while a cut is made: they are checked again after it, and rivals must not slip in together. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { Bed } from '../node/bed.ts';
import { operationTransaction } from '../staking/signed.ts';

const COIN = 100_000_000n;
const ROUNDS = 3;
const RIVALS = 32;
const key = developmentKey(TREASURY);
const miner = developmentKey('miner').address;
const signer = developmentKey('dora');
const validator = validatorId(developmentKey(validatorName(0)).publicKey);
const bond = (n: number): StakingOperation => ({
  name: 'bond',
  validator,
  owner: signer.address,
  amount: 100n * COIN,
  rewardAddress: developmentKey(`r${n}`).address,
});

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open({ genesis: { validators: 2, intervalCuts: 24 } });
});
afterEach(() => bed.close());

/** Submits all of them right before a cut and returns how many were accepted. */
async function acceptedBesideACut(spendIndex: number, operationOf: (n: number) => StakingOperation) {
  const spend = bed.treasury(spendIndex);
  const sent = Array.from({ length: RIVALS }, (_, n) =>
    bed.node.submitTransaction(operationTransaction(bed.node.chain, { key, spend }, operationOf(n), { signer })),
  );
  await bed.seal();
  return (await Promise.all(sent)).filter(({ status }) => status === 'accepted').length;
}

async function expectNothingIsLeft(): Promise<void> {
  await bed.mine(miner);
  await bed.seal();
  expect([bed.node.mempool.count, bed.node.mempool.bytes]).toEqual([0, 0]);
}

test('of many operations that spend one output one is accepted, and none stays behind when it is executed', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    expect(await acceptedBesideACut(round, bond)).toBe(1);
    expect(bed.node.mempool.count).toBe(1);
    await expectNothingIsLeft();
  }
});

test('of many copies of one operation, with other signatures each, one is accepted; no template has it twice', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    expect(await acceptedBesideACut(round, () => bond(round))).toBe(1);
    expect(decodeBody(bed.make(miner).body).transactions.length).toBe(1);
    await expectNothingIsLeft();
  }
});
