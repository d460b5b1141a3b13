/** Routes about the chain head, rates, mempool, node and supply. */

import { MAX_SUPPLY } from '../../protocol/amount.ts';
import type { ChainHead, ChainRates, MempoolDocument, NodeSync } from '../../protocol/api/documents.ts';
import { nextInterval, splitHalves } from '../../protocol/ledger/emission.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import { MIN_FEE_PER_MASS } from '../../protocol/transactions/fee.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import type { FullNode } from '../full-node.ts';
import type { Handlers } from './api-context.ts';
import { identityDocument } from './signed-headers.ts';

/** Pace of cuts that an estimate uses before there is one to measure. */
const TARGET_CUT_MILLIS = 2_500;

export function chainHead(node: FullNode): ChainHead {
  const head = node.chain.head();
  return {
    api_version: 1,
    network: node.chain.network.name,
    chain_id: nativeHex(node.chain.chainId),
    finalized_height: head.height,
    cut: {
      height: head.height,
      cut_id: nativeHex(head.cutId),
      state_root: nativeHex(head.stateRoot),
      validator_set_id: nativeHex(head.validatorSetId),
    },
    finalized_at_millis: head.timestampMillis,
  };
}

export function chainRates(node: FullNode): ChainRates {
  const rates = node.chain.rates();
  return {
    api_version: 1,
    finalized_height: rates.height,
    cuts: rates.cuts,
    span_millis: Math.round(rates.cutMillis * rates.cuts),
    cut_millis: Math.round(rates.cutMillis),
    hashrate: rates.hashesPerSecond.toString(),
    block_work: rates.work.toString(),
    target: nativeHex(targetToBytes(rates.target)),
    registered_blocks: Math.round(rates.blocksPerCut * rates.cuts),
  };
}

export const mempoolDocument = (node: FullNode): MempoolDocument => ({
  api_version: 1,
  finalized_height: node.chain.head().height,
  transactions: node.mempool.count,
  bytes: node.mempool.bytes,
  max_bytes: node.mempool.maxBytes,
  min_fee_per_mass: MIN_FEE_PER_MASS.toString(),
});

/** Without peers the best peer's height is unknown; it is not this node's own. */
export function nodeSync(node: FullNode): NodeSync {
  const sync = node.chain.sync();
  return {
    api_version: 1,
    synced: sync.synced,
    finalized_height: sync.height,
    best_peer_height: sync.peers?.bestPeerHeight ?? null,
    behind_by: sync.peers?.behindBy ?? 0,
    peers: sync.peers?.peers ?? 0,
  };
}

export const chainRoutes: Pick<
  Handlers,
  'chainHead' | 'chainRates' | 'mempool' | 'nodeIdentity' | 'nodeSync' | 'nodeStatus' | 'supply' | 'emission'
> = {
  chainHead: (context) => chainHead(context.node),
  chainRates: (context) => chainRates(context.node),
  mempool: (context) => mempoolDocument(context.node),
  nodeSync: (context) => nodeSync(context.node),

  nodeIdentity: (context) => identityDocument(context.node.chain, context.identity),

  nodeStatus: (context) => ({
    api_version: 1,
    version: context.version,
    network: context.node.chain.network.name,
    chain_id: nativeHex(context.node.chain.chainId),
    state: context.state(),
    started_at_millis: context.startedMillis,
    uptime_millis: Math.max(0, context.now() - context.startedMillis),
    finalized_height: context.node.chain.head().height,
    indexed_height: context.index.height(),
    update_required: context.node.chain.sync().peers?.updateRequired ?? false,
    update_announced: context.node.chain.sync().peers?.updateAnnounced ?? false,
    storage: context.node.chain.storage,
    bodies_from_height: context.node.chain.bodiesFrom(),
    validators: context.node.makesCuts ? 'embedded' : 'network',
  }),

  supply(context) {
    const supply = context.node.chain.supply();
    return {
      api_version: 1,
      finalized_height: supply.height,
      max_supply: MAX_SUPPLY.toString(),
      minted: supply.minted.toString(),
      burned: supply.burned.toString(),
      total_supply: (supply.minted - supply.burned).toString(),
      circulating_supply: supply.outputs.toString(),
      bonded: supply.bonded.toString(),
      unbonding: supply.unbonding.toString(),
      work_reserve: supply.workReserve.toString(),
      stake_reserve: supply.stakeReserve.toString(),
      unscheduled_emission: supply.unscheduled.toString(),
    };
  },

  emission(context) {
    const { state, subsidy, intervalCuts, nextReductionHeight } = context.node.chain.emission();
    const { height, cutMillis } = context.node.chain.rates();
    const halves = splitHalves(subsidy);
    const pace = cutMillis > 0 ? cutMillis : TARGET_CUT_MILLIS;
    return {
      api_version: 1,
      finalized_height: height,
      interval: state.interval,
      interval_cuts: intervalCuts,
      interval_amount: state.amount.toString(),
      subsidy: subsidy.toString(),
      work_half: halves.work.toString(),
      stake_half: halves.stake.toString(),
      next_reduction_height: nextReductionHeight,
      next_interval_amount: nextInterval(state).amount.toString(),
      next_reduction_millis:
        context.node.chain.head().timestampMillis + Math.round(Math.max(0, nextReductionHeight - height) * pace),
      remaining: context.node.chain.supply().unscheduled.toString(),
    };
  },
};
