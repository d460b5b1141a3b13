/** The record of a cut is read for every header on it, before its work is checked: that takes one hash, however many the cut paid. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stakeRewardOutpoint } from '../../node/ledger/rewards.ts';
import { decodeCutRecord, encodeRecordedCut } from '../../node/store/records.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { id, useSha384 } from '../../protocol/crypto/identifier.ts';
import { cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';
import { nativeSha384, useNativeSha384 } from '../../runtime/native/native-sha384.ts';

let hashes = 0;
beforeAll(() =>
  useSha384((bytes) => {
    hashes++;
    return nativeSha384(bytes);
  }),
);
afterAll(useNativeSha384);

const PAID = 500;
const idOf = (name: string) => id('TEST', utf8(name));
const zero = new Uint8Array(48);
const headerBytes = encodeCutHeader({
  networkId: 4,
  height: 5,
  timestampMillis: 5,
  previousId: zero,
  blocksRoot: zero,
  stateRoot: zero,
  validatorSetId: zero,
  blockCount: 0,
  signers: 1n,
});
const NOTHING = {
  outputs: 0n,
  bonded: 0n,
  unbonding: 0n,
  workReserve: 0n,
  stakeReserve: 0n,
  burned: 0n,
  minted: 0n,
  unscheduled: 0n,
};

test('a record is read with one hash, and has the outpoints of what was paid', () => {
  const [blocks, positions] = ['block', 'position'].map((kind) =>
    Array.from({ length: PAID }, (_, i) => idOf(`${kind} ${i}`)),
  ) as [Uint8Array[], Uint8Array[]];
  const bytes = encodeRecordedCut({
    headerBytes,
    rewards: blocks.map((blockId, i) => ({ blockId, amount: BigInt(i) })) as never,
    stakePayouts: positions.map((positionId) => ({
      positionId,
      interval: 3,
      rewardAddress: new Uint8Array(49),
      amount: 1n,
    })) as never,
    subsidy: 0n,
    fees: 0n,
    figures: NOTHING,
    nextTarget: 1n,
    registered: [],
    transactionCount: 0,
    executedBlocks: 0,
  });
  hashes = 0;
  const record = decodeCutRecord(bytes);
  expect(hashes).toBe(1);
  expect(record.cutId).toEqual(cutId(headerBytes));
  // A reward of nothing makes no output.
  expect(record.rewards.map(({ outpoint }) => outpoint)).toEqual(
    blocks.map((block, i) => (i === 0 ? undefined : workRewardOutpoint(block))),
  );
  expect(record.stakePayouts.map(({ outpoint }) => outpoint)).toEqual(
    positions.map((position) => stakeRewardOutpoint(3, position)),
  );
});
