/**
 * One cut, from a state and some blocks to the next state and everything that happened (ledger rules 33 to 40). Pure: it reads the
 * finalized ledger and writes nothing. In order: register and execute the blocks, issue the cut's subsidy, pay the anchor whose
 * window closes, pay stake that is due, retarget, check the value equation.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import {
  blocksRoot,
  type CutHeader,
  cutId,
  encodeCutHeader,
  MAX_CUT_BLOCKS,
  MAX_CUT_SIGNATURES,
} from '../../protocol/ledger/cut.ts';
import { nextInterval, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type {
  CutEffects,
  ExpiredBlock,
  LostTransaction,
  RegisteredBlock,
  TransactionEffect,
  ValueFigures,
  WorkReward,
} from './effects.ts';
import { type CheckWitnesses, CutExecution, type LedgerReads } from './execution.ts';
import { carriedSignatures, executionOrder, isWindowOpen, nameOf, type Registrable } from './registration.ts';
import { blockWork, nextRate } from './retarget.ts';
import { payAnchor } from './rewards.ts';
import type { Committee } from './staking/committee.ts';
import { advanceStake } from './staking/epoch.ts';
import { StakingLayer, type StakingReads } from './staking/layer.ts';
import { isPaymentDue } from './staking/payment.ts';
import {
  type AnchorWindow,
  anchorWindow,
  checkValueEquation,
  encodeState,
  type LedgerState,
  stateRoot,
  targetOfState,
  windowOf,
} from './state.ts';
import type { Trie, TrieUpdate } from './trie.ts';
import type { WorkBlock } from './work-block.ts';

export interface LedgerView extends LedgerReads {
  readonly state: LedgerState;
  /** Identifier of the cut that this state is the state after. */
  readonly cutId: Bytes;
  readonly networkId: number;
  readonly outputTrie: Trie;
  readonly keyTrie: Trie;
  readonly staking: StakingReads;
  readonly stakingTries: StakingTries;
  isRegistered(blockId: Bytes): boolean;
}

/** The committed sets of staking. */
export type StakingTries = { readonly validators: Trie; readonly positions: Trie; readonly usedKeys: Trie };

export type CutInput = {
  readonly timestampMillis: number;
  /** Signers of the previous cut's certificate. */
  readonly signers: bigint;
  readonly blocks: readonly (WorkBlock & Registrable)[];
  readonly expired: readonly ExpiredBlock[];
  /** Returns the waiting transactions that this cut makes impossible; called once the rest is known. */
  lost(spent: CutEffects['spent'], height: number): readonly LostTransaction[];
};

export type StakingUpdate = {
  readonly validators: TrieUpdate;
  readonly positions: TrieUpdate;
  readonly usedKeys: TrieUpdate;
};

export type AppliedCut = {
  readonly state: LedgerState;
  readonly stateBytes: Bytes;
  readonly effects: CutEffects;
  readonly outputs: TrieUpdate;
  readonly keys: TrieUpdate;
  readonly staking: StakingUpdate;
  /** The committee that this cut fixed. */
  readonly committee?: Committee;
  /** Windows that are new or changed, and the one that closed. */
  readonly windows: readonly AnchorWindow[];
  readonly closedAnchor?: number;
};

export function applyCut(view: LedgerView, input: CutInput, check: CheckWitnesses): AppliedCut {
  const before = view.state;
  const height = before.height + 1;
  const blocks = executionOrder(input.blocks);
  checkBlocks(view, blocks, height);

  const layer = new StakingLayer(view.staking);
  const { intervalCuts, chainId, stake: stakeBefore } = before;
  const part = {
    layer,
    intervalCuts,
    chainId,
    sweeps: stakeBefore.sweeps,
    isPaymentDue: (validator: Bytes) => isPaymentDue(stakeBefore.walk, stakeBefore.previous, validator),
  };
  const execution = new CutExecution(height, view, part, check);
  const { registered, transactions, fees, workFees, feeShares } = executeBlocks(blocks, execution);
  const windows = registerInWindows(before.windows, blocks, feeShares);

  const k = height % intervalCuts;
  const emission = k === 0 ? nextInterval(before.emission) : before.emission;
  const subsidy = subsidyOfCut(emission.amount, k, intervalCuts);
  const halves = splitHalves(subsidy);
  const stakeFees = fees - workFees;

  const closing =
    windows[0] !== undefined && windows[0].anchorHeight === height - REGISTRATION_WINDOW ? windows[0] : undefined;
  const payment = closing === undefined ? undefined : payAnchor(closing.workHalf, before.workCarry, closing.blocks);
  const rewards = (payment?.shares ?? []).map((share) => workReward(share, height - REGISTRATION_WINDOW));
  for (const { outpoint, payout, amount } of rewards)
    if (outpoint !== undefined) execution.create({ outpoint, address: payout, amount, source: 'work_reward' });

  const { stake, payouts } = advanceStake(stakeBefore, layer, {
    height,
    intervalCuts,
    signers: input.signers,
    earned: halves.stake + stakeFees,
    begun: execution.begun,
  });
  for (const { outpoint, rewardAddress, amount } of payouts)
    execution.create({ outpoint, address: rewardAddress, amount, source: 'stake_reward' });

  const paidWork = sum(rewards);
  const outputs = view.outputTrie.update(before.outputs, execution.outputChanges());
  const keys = view.keyTrie.update(before.keys, execution.keyChanges());
  const staking = updateStaking(view.stakingTries, before, layer);
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
    validators: staking.validators.root,
    positions: staking.positions.root,
    usedKeys: staking.usedKeys.root,
    minted: before.minted + subsidy,
    burned: before.burned + execution.burned + layer.burned,
    bonded: before.bonded + layer.bonded,
    unbonding: before.unbonding + layer.unbonding,
    workReserve: before.workReserve + halves.work + workFees - paidWork,
    stakeReserve: before.stakeReserve + halves.stake + stakeFees - sum(payouts),
    emission,
    workCarry: payment === undefined ? before.workCarry : payment.carry,
    workRate: nextRate(before.workRate, registeredWork, newestWork, before.minimumWork),
    stake,
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
    validatorSetId: stakeBefore.committee.setId,
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
    stakePayouts: payouts,
    keys: execution.keys,
    staking: layer.changes(),
    subsidy,
    fees,
    interval: emission.interval,
    figures: figuresOf(state),
    outputCount: state.outputs.count,
    nextWork: blockWork(state.workRate),
    nextTarget: targetOfState(state),
  };
  const changed = state.windows.filter((window, i) => window !== before.windows[i + (closing === undefined ? 0 : 1)]);
  const fixed = stake.committee === stakeBefore.committee ? {} : { committee: stake.committee };
  const result = { state, stateBytes, effects, outputs, keys, staking, ...fixed, windows: changed };
  return closing === undefined ? result : { ...result, closedAnchor: closing.anchorHeight };
}

/** Conditions that every node checks for the blocks of a cut, whatever its source. */
function checkBlocks(view: LedgerView, blocks: readonly WorkBlock[], height: number): void {
  if (blocks.length > MAX_CUT_BLOCKS) throw new Error(`a cut registers at most ${MAX_CUT_BLOCKS} blocks`);
  const signatures = carriedSignatures(blocks);
  if (signatures > MAX_CUT_SIGNATURES)
    throw new Error(`the blocks of a cut carry at most ${MAX_CUT_SIGNATURES} signatures, these ${signatures}`);
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

/** The updates of the three sets of staking. */
export const updateStaking = (
  tries: StakingTries,
  before: Pick<LedgerState, 'validators' | 'positions' | 'usedKeys'>,
  layer: StakingLayer,
): StakingUpdate => ({
  validators: tries.validators.update(before.validators, layer.validatorChanges()),
  positions: tries.positions.update(before.positions, layer.positionChanges()),
  usedKeys: tries.usedKeys.update(before.usedKeys, layer.keyChanges()),
});

function sum(payments: readonly { readonly amount: bigint }[]): bigint {
  let total = 0n;
  for (const { amount } of payments) total += amount;
  return total;
}

/** Emission of the running interval that later cuts will issue, and everything after it. */
export function unscheduledEmission(state: LedgerState): bigint {
  const k = state.height % state.intervalCuts;
  const issued = (state.emission.amount * BigInt(k + 1)) / BigInt(state.intervalCuts);
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
