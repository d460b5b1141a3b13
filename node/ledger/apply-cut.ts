/**
 * One cut, from a state and some blocks to the next state and everything that happened (ledger rules 33 to 40). Pure: it reads the
 * finalized ledger and writes nothing. In order: register and execute the blocks, issue the cut's subsidy, pay the anchor whose
 * window closes, pay stake that is due, retarget, check the value equation.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { blocksRoot, type CutHeader, cutId, encodeCutHeader, MAX_CUT_BLOCKS } from '../../protocol/cut.ts';
import { nextInterval, splitHalves, subsidyOfCut } from '../../protocol/emission.ts';
import { INTERVAL_CUTS, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { workRewardOutpoint } from '../../protocol/work-reward.ts';
import type { Position } from '../full-node.ts';
import type {
  CutEffects,
  ExpiredBlock,
  LostTransaction,
  RegisteredBlock,
  StakePayout,
  TransactionEffect,
  ValueFigures,
  WorkReward,
} from './effects.ts';
import { type CheckWitnesses, CutExecution, type LedgerReads } from './execution.ts';
import { executionOrder, isWindowOpen, nameOf, type Registrable } from './registration.ts';
import { blockWork, nextRate } from './retarget.ts';
import { divideStakePool, payAnchor, stakeRewardOutpoint } from './rewards.ts';
import {
  type AnchorWindow,
  anchorWindow,
  checkValueEquation,
  type DueStake,
  encodeState,
  type LedgerState,
  stateRoot,
  targetOfState,
  windowOf,
} from './state.ts';
import type { Trie, TrieUpdate } from './trie.ts';
import type { WorkBlock } from './work-block.ts';

export const ATTENDANCE_WINDOWS = 12;
export const ATTENDANCE_NEEDED = 9;
const ATTENDANCE_CUTS = INTERVAL_CUTS / ATTENDANCE_WINDOWS;
const STAKE_PAYMENTS_PER_CUT = 64;

export interface LedgerView extends LedgerReads {
  readonly state: LedgerState;
  /** Identifier of the cut that this state is the state after. */
  readonly cutId: Bytes;
  readonly networkId: number;
  readonly outputTrie: Trie;
  readonly keyTrie: Trie;
  isRegistered(blockId: Bytes): boolean;
}

export type CutInput = {
  readonly timestampMillis: number;
  /** Who signed the certificate of the cut before. */
  readonly signers: bigint;
  readonly blocks: readonly (WorkBlock & Registrable)[];
  readonly expired: readonly ExpiredBlock[];
  /** Which waiting transactions this cut makes impossible; asked once the rest is known. */
  lost(spent: CutEffects['spent'], height: number): readonly LostTransaction[];
};

export type AppliedCut = {
  readonly state: LedgerState;
  readonly stateBytes: Bytes;
  readonly effects: CutEffects;
  readonly outputs: TrieUpdate;
  readonly keys: TrieUpdate;
  /** Windows that are new or changed, and the one that closed. */
  readonly windows: readonly AnchorWindow[];
  readonly closedAnchor?: number;
};

export function applyCut(view: LedgerView, input: CutInput, check: CheckWitnesses): AppliedCut {
  const before = view.state;
  const height = before.height + 1;
  const blocks = executionOrder(input.blocks);
  checkBlocks(view, blocks, height);

  const execution = new CutExecution(height, view, check);
  const { registered, transactions, fees, workFees, feeShares } = executeBlocks(blocks, execution);
  const windows = registerInWindows(before.windows, blocks, feeShares);

  const k = height % INTERVAL_CUTS;
  const emission = k === 0 ? nextInterval(before.emission) : before.emission;
  const subsidy = subsidyOfCut(emission.amount, k);
  const halves = splitHalves(subsidy);
  const stakeFees = fees - workFees;

  const closing =
    windows[0] !== undefined && windows[0].anchorHeight === height - REGISTRATION_WINDOW ? windows[0] : undefined;
  const payment = closing === undefined ? undefined : payAnchor(closing.workHalf, before.workCarry, closing.blocks);
  const rewards = (payment?.shares ?? []).map((share) => workReward(share, height - REGISTRATION_WINDOW));
  for (const { outpoint, payout, amount } of rewards)
    if (outpoint !== undefined) execution.create({ outpoint, address: payout, amount, source: 'work_reward' });

  const stake = payStake(before, height, input.signers);
  for (const { outpoint, rewardAddress, amount } of stake.payouts)
    execution.create({ outpoint, address: rewardAddress, amount, source: 'stake_reward' });

  const paidWork = sum(rewards);
  const outputs = view.outputTrie.update(before.outputs, execution.outputChanges());
  const keys = view.keyTrie.update(before.keys, execution.keyChanges());
  let registeredWork = 0n;
  for (const { work } of registered) registeredWork += work;
  const newest = blocks.filter(({ header }) => header.anchorHeight === height - 1);
  const newestWork = {
    work: newest.reduce((sum, { work }) => sum + work, 0n),
    blocks: newest.length,
    blocksBefore: windows.find(({ anchorHeight }) => anchorHeight === height - 2)?.blocks.length ?? 0,
  };
  const ownWindow = anchorWindow(height, halves.work, []);
  const state: LedgerState = {
    ...before,
    height,
    previousId: view.cutId,
    timestampMillis: input.timestampMillis,
    outputs: outputs.root,
    keys: keys.root,
    minted: before.minted + subsidy,
    burned: before.burned + execution.burned,
    workReserve: before.workReserve + halves.work + workFees - paidWork,
    stakeReserve: before.stakeReserve + halves.stake + stakeFees - sum(stake.payouts),
    emission,
    workCarry: payment === undefined ? before.workCarry : payment.carry,
    workRate: nextRate(before.workRate, registeredWork, newestWork, before.minimumWork),
    stakePool: stake.pool + halves.stake + stakeFees,
    dueStake: stake.due,
    attendance: stake.attendance,
    windows: [...(closing === undefined ? windows : windows.slice(1)), ownWindow],
  };
  checkValueEquation(state);

  const stateBytes = encodeState(state);
  const header: CutHeader = {
    networkId: view.networkId,
    height,
    timestampMillis: input.timestampMillis,
    previousId: view.cutId,
    blocksRoot: blocksRoot(blocks.map((block) => block.id)),
    stateRoot: stateRoot(stateBytes),
    validatorSetId: state.validatorSetId,
    blockCount: blocks.length,
    signers: input.signers,
  };
  const headerBytes = encodeCutHeader(header);
  const effects: CutEffects = {
    chainId: state.chainId,
    cutId: cutId(headerBytes),
    header,
    headerBytes,
    created: execution.created,
    spent: execution.spent,
    transactions,
    lost: input.lost(execution.spent, height),
    registered,
    expired: input.expired,
    rewards,
    stakePayouts: stake.payouts,
    keys: execution.keys,
    subsidy,
    fees,
    interval: emission.interval,
    figures: figuresOf(state),
    outputCount: state.outputs.count,
    nextWork: blockWork(state.workRate),
    nextTarget: targetOfState(state),
  };
  const changed = state.windows.filter((window, i) => window !== before.windows[i + (closing === undefined ? 0 : 1)]);
  const result = { state, stateBytes, effects, outputs, keys, windows: changed };
  return closing === undefined ? result : { ...result, closedAnchor: closing.anchorHeight };
}

/** What every node must find true of the blocks a cut names, wherever the cut comes from. */
function checkBlocks(view: LedgerView, blocks: readonly WorkBlock[], height: number): void {
  if (blocks.length > MAX_CUT_BLOCKS) throw new Error(`a cut registers at most ${MAX_CUT_BLOCKS} blocks`);
  const names = new Set(blocks.map((block) => nameOf(block.id)));
  const bodies = new Set(blocks.map((block) => nameOf(block.bodyId)));
  if (names.size !== blocks.length || bodies.size !== blocks.length)
    throw new Error('a cut names a block or body twice');
  for (const { blocks: registered } of view.state.windows)
    for (const { bodyId } of registered)
      if (bodies.has(nameOf(bodyId))) throw new Error('a body is used for a second block');
  for (const block of blocks) {
    if (!isWindowOpen(block.header.anchorHeight, height)) throw new Error('a cut names a block whose window is closed');
    if (windowOf(view.state, block.header.anchorHeight) === undefined)
      throw new Error('a cut names a block of no anchor');
    for (const parent of block.body.parents)
      if (!names.has(nameOf(parent)) && !view.isRegistered(parent))
        throw new Error('a cut names a block before its parent');
  }
}

function executeBlocks(blocks: readonly WorkBlock[], execution: CutExecution) {
  const transactions: TransactionEffect[] = [];
  const registered: RegisteredBlock[] = [];
  const feeShares = new Map<string, bigint>();
  let fees = 0n;
  let workFees = 0n;
  for (const block of blocks) {
    let feeShare = 0n;
    block.transactions.forEach((transaction, index) => {
      const carried = { id: transaction.id, wire: transaction.wire, body: transaction.body, blockId: block.id, index };
      const outcome = execution.execute(transaction);
      if (outcome === 'repeated') transactions.push({ ...carried, outcome });
      else if ('reason' in outcome) transactions.push({ ...carried, outcome: 'failed', ...outcome });
      else {
        transactions.push({ ...carried, outcome: 'executed', mass: transaction.mass, ...outcome });
        fees += outcome.fee;
        feeShare += splitHalves(outcome.fee).work;
      }
    });
    workFees += feeShare;
    feeShares.set(nameOf(block.id), feeShare);
    registered.push({
      id: block.id,
      header: block.headerBytes,
      anchorHeight: block.header.anchorHeight,
      payout: block.body.payout,
      extranonce: block.body.extranonce,
      parents: block.body.parents,
      transactionCount: block.transactions.length,
      work: block.work,
      feeShare,
      bodyBytes: block.bodyBytes.length,
    });
  }
  return { registered, transactions, fees, workFees, feeShares };
}

function registerInWindows(
  windows: readonly AnchorWindow[],
  blocks: readonly WorkBlock[],
  feeShares: ReadonlyMap<string, bigint>,
): readonly AnchorWindow[] {
  if (blocks.length === 0) return windows;
  return windows.map((window) => {
    const own = blocks.filter((block) => block.header.anchorHeight === window.anchorHeight);
    if (own.length === 0) return window;
    const added = own.map((block) => ({
      id: block.id,
      payout: block.body.payout,
      feeShare: feeShares.get(nameOf(block.id)) ?? 0n,
      bodyId: block.bodyId,
    }));
    return anchorWindow(window.anchorHeight, window.workHalf, [...window.blocks, ...added]);
  });
}

function workReward(
  share: { id: Bytes; payout: Bytes; feeShare: bigint; subsidy: bigint; amount: bigint },
  anchorHeight: number,
): WorkReward {
  const reward = {
    blockId: share.id,
    anchorHeight,
    payout: share.payout,
    subsidy: share.subsidy,
    fees: share.feeShare,
    amount: share.amount,
  };
  return share.amount === 0n ? reward : { ...reward, outpoint: workRewardOutpoint(share.id) };
}

/** Attendance, the division of an ended interval's pool and the payments of this cut. `pool` is before this cut's own halves. */
function payStake(before: LedgerState, height: number, signers: bigint) {
  const k = height % INTERVAL_CUTS;
  let { signed, windows } = before.attendance;
  let pool = before.stakePool;
  let due: readonly DueStake[] = before.dueStake;
  if (k % ATTENDANCE_CUTS === 0) {
    windows = windows.map((attended, member) => attended + Number((signed >> BigInt(member)) & 1n));
    signed = 0n;
  }
  if (k === 0) {
    const interval = height / INTERVAL_CUTS - 1;
    const division = divideStakePool(
      pool,
      before.positions.map(({ principal }, i) => ({ principal, earns: (windows[i] ?? 0) >= ATTENDANCE_NEEDED })),
    );
    due = [...due, ...division.shares.map((share) => ({ interval, ...share }))];
    pool = division.left;
    windows = windows.map(() => 0);
  }
  const payouts = due.slice(0, STAKE_PAYMENTS_PER_CUT).map(({ interval, position, amount }): StakePayout => {
    const { id, validatorId, rewardAddress } = before.positions[position] as Position;
    return {
      positionId: id,
      validatorId,
      interval,
      rewardAddress,
      amount,
      outpoint: stakeRewardOutpoint(interval, id),
    };
  });
  return { payouts, due: due.slice(payouts.length), pool, attendance: { signed: signed | signers, windows } };
}

function sum(payments: readonly { readonly amount: bigint }[]): bigint {
  let total = 0n;
  for (const { amount } of payments) total += amount;
  return total;
}

/** Emission of the running interval that later cuts will issue, and everything after it. */
export function unscheduledEmission(state: LedgerState): bigint {
  const k = state.height % INTERVAL_CUTS;
  const issued = (state.emission.amount * BigInt(k + 1)) / BigInt(INTERVAL_CUTS);
  return state.emission.remaining + state.emission.amount - issued;
}

export const figuresOf = (state: LedgerState): ValueFigures => ({
  outputs: state.outputs.sum,
  bonded: state.bonded,
  unbonding: state.unbonding,
  workReserve: state.workReserve,
  stakeReserve: state.stakeReserve,
  burned: state.burned,
  minted: state.minted,
  unscheduled: unscheduledEmission(state),
});
