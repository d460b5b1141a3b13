/**
 * The records of the store and their bytes: a cut, a block, a transaction. Records are final history; only a block's
 * reward and a transaction's outcome change, and only forward.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { ByteReader, type Bytes, ByteWriter } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { CUT_HEADER_BYTES, cutId, decodeCutHeader } from '../../protocol/ledger/cut.ts';
import { HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { targetFromBytes, targetToBytes } from '../../protocol/ledger/target.ts';
import { workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { BlockRecord, BlockReward, CutRecord, Origin } from '../full-node.ts';
import { type CutEffects, FAILURE_REASONS, type FailureReason, type RegisteredBlock } from '../ledger/effects.ts';
import { stakeRewardOutpoint } from '../ledger/rewards.ts';

/** The parts of a cut's record. */
export type RecordedCut = Pick<
  CutEffects,
  'headerBytes' | 'rewards' | 'stakePayouts' | 'subsidy' | 'fees' | 'figures' | 'nextTarget'
> & {
  readonly registered: readonly Pick<RegisteredBlock, 'id' | 'work'>[];
  readonly transactionCount: number;
  readonly executedBlocks: number;
};

export function encodeCutRecord(effects: CutEffects): Uint8Array<ArrayBuffer> {
  const executed = new Set(
    effects.transactions.filter((transaction) => transaction.outcome === 'executed').map(({ blockId }) => blockId),
  );
  const counts = { transactionCount: effects.transactions.length, executedBlocks: executed.size };
  return encodeRecordedCut({ ...effects, ...counts });
}

export function encodeRecordedCut(cut: RecordedCut): Uint8Array<ArrayBuffer> {
  const { figures } = cut;
  let registeredWork = 0n;
  for (const { work } of cut.registered) registeredWork += work;
  const writer = new ByteWriter(1024).raw(cut.headerBytes).u8(cut.registered.length);
  for (const block of cut.registered) writer.raw(block.id);
  writer.u32(cut.transactionCount).u8(cut.executedBlocks).u32(cut.rewards.length);
  for (const reward of cut.rewards) writer.raw(reward.blockId).u64(reward.amount);
  writer.u32(cut.stakePayouts.length);
  for (const payout of cut.stakePayouts)
    writer.height(payout.interval).raw(payout.positionId).raw(payout.rewardAddress).u64(payout.amount);
  writer.u64(cut.subsidy).u64(cut.fees);
  for (const value of [
    figures.outputs,
    figures.bonded,
    figures.unbonding,
    figures.workReserve,
    figures.stakeReserve,
    figures.burned,
    figures.minted,
    figures.unscheduled,
  ])
    writer.u64(value);
  return writer
    .raw(targetToBytes(cut.nextTarget))
    .u128(registeredWork & U128)
    .u128(registeredWork >> 128n)
    .done();
}

const U128 = (1n << 128n) - 1n;

/** Outpoints are hashed when they are read: the check of every header reads its anchor's record, and a cut may pay thousands. */
export function decodeCutRecord(bytes: Bytes): CutRecord {
  const reader = new ByteReader(bytes);
  const headerBytes = reader.take(CUT_HEADER_BYTES);
  const blockIds: Bytes[] = [];
  for (let left = reader.u8(); left > 0; left--) blockIds.push(reader.take(ID_BYTES));
  const transactionCount = reader.u32();
  const executedBlocks = reader.u8();
  const rewards: CutRecord['rewards'][number][] = [];
  for (let left = reader.u32(); left > 0; left--) {
    const blockId = reader.take(ID_BYTES);
    const amount = reader.u64();
    rewards.push(
      amount === 0n
        ? { blockId, amount }
        : {
            blockId,
            amount,
            get outpoint() {
              return workRewardOutpoint(blockId);
            },
          },
    );
  }
  const stakePayouts: CutRecord['stakePayouts'][number][] = [];
  for (let left = reader.u32(); left > 0; left--) {
    const interval = reader.height();
    const positionId = reader.take(ID_BYTES);
    const rewardAddress = reader.take(ADDRESS_PAYLOAD_BYTES);
    const amount = reader.u64();
    stakePayouts.push({
      positionId,
      rewardAddress,
      amount,
      get outpoint() {
        return stakeRewardOutpoint(interval, positionId);
      },
    });
  }
  const record = {
    cutId: cutId(headerBytes),
    header: decodeCutHeader(headerBytes),
    headerBytes,
    blockIds,
    transactionCount,
    executedBlocks,
    rewards,
    stakePayouts,
    subsidy: reader.u64(),
    fees: reader.u64(),
    figures: {
      outputs: reader.u64(),
      bonded: reader.u64(),
      unbonding: reader.u64(),
      workReserve: reader.u64(),
      stakeReserve: reader.u64(),
      burned: reader.u64(),
      minted: reader.u64(),
      unscheduled: reader.u64(),
    },
    target: targetFromBytes(reader.take(32)),
    registeredWork: reader.u128() | (reader.u128() << 128n),
  };
  reader.end();
  return record;
}

const REWARD_STATES = ['waiting', 'pending', 'paid', 'expired'] as const;

export function encodeBlockRecord(record: BlockRecord): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(1024)
    .raw(record.header)
    .height(record.anchorHeight)
    .height(record.acceptedMillis)
    .u8(record.origin === 'own' ? 0 : 1)
    .raw(record.payout)
    .short(record.extranonce)
    .u8(record.parents.length);
  for (const parent of record.parents) writer.raw(parent);
  writer
    .u32(record.transactionCount)
    .height(record.registeredHeight ?? 0)
    .u8(REWARD_STATES.indexOf(record.reward.state));
  if (record.reward.state === 'pending') writer.u64(record.reward.fees);
  if (record.reward.state === 'paid')
    writer.height(record.reward.height).u64(record.reward.reward.subsidy).u64(record.reward.reward.fees);
  return writer.done();
}

export function decodeBlockRecord(id: Bytes, bytes: Bytes): BlockRecord {
  const reader = new ByteReader(bytes);
  const header = reader.take(HEADER_BYTES);
  const anchorHeight = reader.height();
  const acceptedMillis = reader.height();
  const origin: Origin = reader.u8() === 0 ? 'own' : 'relayed';
  const payout = reader.take(ADDRESS_PAYLOAD_BYTES);
  const extranonce = reader.short();
  const parents: Bytes[] = [];
  for (let left = reader.u8(); left > 0; left--) parents.push(reader.take(ID_BYTES));
  const transactionCount = reader.u32();
  const registeredHeight = reader.height();
  const reward = readReward(id, reader);
  reader.end();
  const record = {
    id,
    header,
    anchorHeight,
    dueHeight: anchorHeight + REGISTRATION_WINDOW,
    acceptedMillis,
    origin,
    payout,
    extranonce,
    parents,
    transactionCount,
    reward,
  };
  return registeredHeight === 0 ? record : { ...record, registeredHeight };
}

function readReward(id: Bytes, reader: ByteReader): BlockReward {
  const state = REWARD_STATES[reader.u8()];
  if (state === 'pending') return { state, fees: reader.u64() };
  if (state !== 'paid') return { state: state === 'expired' ? 'expired' : 'waiting' };
  const height = reader.height();
  const subsidy = reader.u64();
  const fees = reader.u64();
  const amount = subsidy + fees;
  const reward = { subsidy, fees, amount };
  return { state, height, reward: amount === 0n ? reward : { ...reward, outpoint: workRewardOutpoint(id) } };
}

/** The result of a transaction in finalized cuts; `carriedBy`, the block that carried it and its index there, is missing if it failed while waiting. */
export type TransactionRecord = {
  readonly outcome: 'executed' | FailureReason;
  readonly height: number;
  readonly carriedBy?: { readonly blockId: Bytes; readonly index: number };
};

const OUTCOMES = ['executed', ...FAILURE_REASONS] as const;

export function encodeTransactionRecord(record: TransactionRecord): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(72).u8(OUTCOMES.indexOf(record.outcome)).height(record.height);
  if (record.carriedBy !== undefined) writer.raw(record.carriedBy.blockId).u32(record.carriedBy.index);
  return writer.done();
}

export function decodeTransactionRecord(bytes: Bytes): TransactionRecord {
  const reader = new ByteReader(bytes);
  const outcome = OUTCOMES[reader.u8()] ?? 'invalid';
  const height = reader.height();
  if (reader.left === 0) return { outcome, height };
  return { outcome, height, carriedBy: { blockId: reader.take(ID_BYTES), index: reader.u32() } };
}
