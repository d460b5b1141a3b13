/**
 * Cut 0 (ledger rule 32): the state made from the genesis document. It is a cut like any other: it issues the first
 * subsidy and is an anchor that work can build on.
 */
import { blocksRoot, type CutHeader, cutId, encodeCutHeader, MAX_COMMITTEE } from '../../protocol/ledger/cut.ts';
import { firstInterval, GENESIS_SUPPLY, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import {
  chainId,
  encodeGenesis,
  type Genesis,
  type GenesisValidator,
  genesisOutpoint,
} from '../../protocol/ledger/genesis.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { consensusKeyHash, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import { type AppliedCut, figuresOf, type LedgerView, updateStaking } from './apply-cut.ts';
import type { CreatedOutput } from './effects.ts';
import { outpointKey, outputEntry } from './output-set.ts';
import { blockWork, initialRate } from './retarget.ts';
import { nobodyYet } from './staking/attendance.ts';
import { byStake, type Committee, committeeOf } from './staking/committee.ts';
import { StakingLayer, type StakingReads } from './staking/layer.ts';
import { newPosition } from './staking/operations.ts';
import { anchorWindow, checkValueEquation, encodeState, type LedgerState, stateRoot, targetOfState } from './state.ts';
import { EMPTY_TRIE } from './trie.ts';

export function genesisCut(genesis: Genesis, tries: LedgerTries): AppliedCut {
  const chain = chainId(encodeGenesis(genesis));
  const layer = new StakingLayer(NOTHING_YET);
  for (const validator of genesis.validators) bondAtGenesis(layer, validator);
  const committee = firstCommittee(layer);
  const created = genesis.outputs.map(
    ({ address, amount }, i): CreatedOutput => ({
      outpoint: genesisOutpoint(chain, i),
      address,
      amount,
      source: 'genesis',
    }),
  );
  const outputs = tries.outputTrie.update(
    EMPTY_TRIE,
    created.map((output) => ({ key: outpointKey(output.outpoint), entry: outputEntry(output) })),
  );
  const keys = tries.keyTrie.update(EMPTY_TRIE, []);
  const staking = updateStaking(
    tries.stakingTries,
    { validators: EMPTY_TRIE, positions: EMPTY_TRIE, usedKeys: EMPTY_TRIE },
    layer,
  );
  const emission = firstInterval();
  const subsidy = subsidyOfCut(emission.amount, 0, genesis.intervalCuts);
  const halves = splitHalves(subsidy);
  const window = anchorWindow(0, halves.work, []);
  const state: LedgerState = {
    chainId: chain,
    height: 0,
    previousId: chain,
    timestampMillis: genesis.timestampMillis,
    outputs: outputs.root,
    keys: keys.root,
    validators: staking.validators.root,
    positions: staking.positions.root,
    usedKeys: staking.usedKeys.root,
    minted: GENESIS_SUPPLY + subsidy,
    burned: 0n,
    bonded: layer.bonded,
    unbonding: 0n,
    workReserve: halves.work,
    stakeReserve: halves.stake,
    emission,
    workCarry: 0n,
    workRate: initialRate(genesis.initialWork),
    minimumWork: genesis.minimumWork,
    intervalCuts: genesis.intervalCuts,
    stake: {
      pool: halves.stake,
      committee,
      previous: committee,
      attendance: nobodyYet(committee.members.length),
      sweeps: [],
    },
    windows: [window],
  };
  checkValueEquation(state);
  const stateBytes = encodeState(state);
  const header: CutHeader = {
    networkId: NETWORKS[genesis.network].id,
    height: 0,
    timestampMillis: genesis.timestampMillis,
    previousId: chain,
    blocksRoot: blocksRoot([]),
    stateRoot: stateRoot(stateBytes),
    validatorSetId: committee.setId,
    blockCount: 0,
    signers: 0n,
  };
  const headerBytes = encodeCutHeader(header);
  return {
    state,
    stateBytes,
    outputs,
    keys,
    staking,
    committee,
    windows: [window],
    effects: {
      chainId: chain,
      cutId: cutId(headerBytes),
      header,
      headerBytes,
      created,
      spent: [],
      transactions: [],
      lost: [],
      registered: [],
      expired: [],
      rewards: [],
      stakePayouts: [],
      keys: [],
      staking: layer.changes(),
      subsidy,
      fees: 0n,
      interval: 0,
      figures: figuresOf(state),
      outputCount: state.outputs.count,
      nextWork: blockWork(state.workRate),
      nextTarget: targetOfState(state),
    },
  };
}

/** All committed sets. */
export type LedgerTries = Pick<LedgerView, 'outputTrie' | 'keyTrie' | 'stakingTries'>;

const NOTHING_YET: StakingReads = {
  validator: () => undefined,
  position: () => undefined,
  isKeyUsed: () => false,
  activeValidators: () => [],
  delegations: () => [],
};

function bondAtGenesis(layer: StakingLayer, registered: GenesisValidator): void {
  const { publicKey, principal, owner, rewardAddress, commission, endpoint } = registered;
  const id = validatorId(publicKey);
  layer.useKey(consensusKeyHash(publicKey));
  layer.putValidator({
    id,
    owner,
    key: publicKey,
    keyFrom: 0,
    formerKeys: [],
    endpoint,
    commission,
    seatFrom: 0,
    heartbeatEpoch: 0,
    jailedUntil: 0,
    stake: principal,
    exitHeight: 0,
    slashHeight: 0,
  });
  const who = { id: selfBondId(id), kind: 'self_bond' as const, validator: id, owner, rewardAddress };
  // The first interval starts with genesis itself.
  layer.putPosition({ ...newPosition(who, principal, 0), atStart: principal });
  layer.bonded += principal;
}

const firstCommittee = (layer: StakingLayer): Committee =>
  committeeOf(
    0,
    [...layer.activeValidators()]
      .sort(byStake)
      .slice(0, MAX_COMMITTEE)
      .map(({ id, key, stake, commission }) => ({
        validatorId: id,
        publicKey: key,
        stake,
        earning: stake,
        commission,
      })),
  );
