/**
 * Cut 0 (ledger rule 32): the genesis document made into a state. It is a cut like any other: it issues the first subsidy and is an
 * anchor that work can build on.
 */
import { ByteWriter, concat } from '../../protocol/bytes.ts';
import { blocksRoot, type CutHeader, cutId, encodeCutHeader } from '../../protocol/cut.ts';
import { firstInterval, GENESIS_SUPPLY, splitHalves, subsidyOfCut } from '../../protocol/emission.ts';
import {
  chainId,
  encodeGenesis,
  type Genesis,
  genesisOutpoint,
  selfBondId,
  validatorId,
} from '../../protocol/genesis.ts';
import { id, LABELS } from '../../protocol/identifier.ts';
import { NETWORKS } from '../../protocol/network.ts';
import type { Position } from '../full-node.ts';
import { type AppliedCut, figuresOf } from './apply-cut.ts';
import type { CreatedOutput } from './effects.ts';
import { outpointKey, outputEntry } from './output-set.ts';
import { blockWork, initialRate } from './retarget.ts';
import { anchorWindow, checkValueEquation, encodeState, type LedgerState, stateRoot, targetOfState } from './state.ts';
import { EMPTY_TRIE, type Trie } from './trie.ts';

export function genesisCut(genesis: Genesis, outputTrie: Trie, keyTrie: Trie): AppliedCut {
  const chain = chainId(encodeGenesis(genesis));
  const positions = genesis.validators.map((validator): Position => {
    const validatorIdentifier = validatorId(validator.publicKey);
    return {
      id: selfBondId(validatorIdentifier),
      validatorId: validatorIdentifier,
      kind: 'self_bond',
      principal: validator.principal,
      rewardAddress: validator.rewardAddress,
      publicKey: validator.publicKey,
    };
  });
  const created = genesis.outputs.map(
    ({ address, amount }, i): CreatedOutput => ({
      outpoint: genesisOutpoint(chain, i),
      address,
      amount,
      source: 'genesis',
    }),
  );
  const outputs = outputTrie.update(
    EMPTY_TRIE,
    created.map((output) => ({ key: outpointKey(output.outpoint), entry: outputEntry(output) })),
  );
  const keys = keyTrie.update(EMPTY_TRIE, []);
  const emission = firstInterval();
  const subsidy = subsidyOfCut(emission.amount, 0);
  const halves = splitHalves(subsidy);
  const window = anchorWindow(0, halves.work, []);
  let bonded = 0n;
  for (const { principal } of positions) bonded += principal;
  const state: LedgerState = {
    chainId: chain,
    height: 0,
    previousId: chain,
    timestampMillis: genesis.timestampMillis,
    outputs: outputs.root,
    keys: keys.root,
    minted: GENESIS_SUPPLY + subsidy,
    burned: 0n,
    bonded,
    unbonding: 0n,
    workReserve: halves.work,
    stakeReserve: halves.stake,
    emission,
    workCarry: 0n,
    workRate: initialRate(genesis.initialWork),
    minimumWork: genesis.minimumWork,
    stakePool: halves.stake,
    dueStake: [],
    attendance: { signed: 0n, windows: positions.map(() => 0) },
    positions,
    validatorSetId: validatorSetId(positions),
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
    validatorSetId: state.validatorSetId,
    blockCount: 0,
    signers: 0n,
  };
  const headerBytes = encodeCutHeader(header);
  return {
    state,
    stateBytes,
    outputs,
    keys,
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

/** Members in the order of the committee, with what they have at stake. */
const validatorSetId = (positions: readonly Position[]) =>
  id(
    LABELS.validatorSet,
    concat(
      ...positions.map(({ validatorId: member, principal }) => new ByteWriter(56).raw(member).u64(principal).done()),
    ),
  );
