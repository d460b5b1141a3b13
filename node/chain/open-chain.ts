/** Opens a chain: starts a new one in an empty store, or checks that the last cut of a used one is complete. */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import type { Certificate } from '../../protocol/ledger/cut.ts';
import { decodeGenesis, encodeGenesis, type Genesis } from '../../protocol/ledger/genesis.ts';
import type { Network } from '../../protocol/network.ts';
import { epochOf } from '../../protocol/staking/limits.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { CutRecord } from '../full-node.ts';
import { genesisCut } from '../ledger/genesis-cut.ts';
import type { Committee } from '../ledger/staking/committee.ts';
import { checkValueEquation, encodeState, type LedgerState, stateRoot } from '../ledger/state.ts';
import type { CutIndexer } from '../store/cut-indexer.ts';
import { type LedgerStore, StoreError } from '../store/ledger-store.ts';
import { type Certifiable, type Certify, verifyCertificate } from './certificate.ts';
import type { Checkpoint } from './checkpoints.ts';

export type OpenedChain = {
  readonly genesis: Genesis;
  readonly state: LedgerState;
  readonly record: CutRecord;
  readonly certificate: Certificate;
};

export type OpenOptions = {
  /** The chain's genesis: a store that has another is refused. */
  readonly genesis?: Genesis;
  /** Makes the genesis of a new chain when the store is empty and none is given. */
  readonly newGenesis?: () => Genesis;
  /** The required network of a store that has a genesis. */
  readonly network?: Network;
  readonly checkpoints?: readonly Checkpoint[];
};

export type OpenDependencies = {
  readonly certify: Certify;
  readonly indexers?: readonly CutIndexer[];
  readonly log: Logger;
};

/** Starts a new chain in an empty store, or checks that the last cut of a used one is complete. */
export async function openChain(
  store: LedgerStore,
  options: OpenOptions,
  { certify, indexers, log }: OpenDependencies,
): Promise<OpenedChain> {
  const stored = store.genesis();
  if (stored === undefined) {
    const genesis = options.genesis ?? options.newGenesis?.();
    if (genesis === undefined)
      throw new StoreError(
        'store_genesis',
        `there is no chain in the data directory: get the genesis document of ${options.network?.name ?? 'the chain'} from its operators, or make one with svcd genesis, and start with --genesis FILE`,
      );
    const cut = genesisCut(genesis, store.tries);
    const certificate = await certify(certifiable(cut.state, cut.state.stake.committee, cut.effects.cutId));
    await store.commit(cut, certificate, indexers ?? [], encodeGenesis(genesis));
    log.info('started a new chain', { chain: cut.effects.chainId, network: genesis.network });
  } else if (options.genesis !== undefined && !equalBytes(stored, encodeGenesis(options.genesis)))
    throw new StoreError('store_genesis', 'the data directory holds another chain');
  const genesis = decodeGenesis(store.genesis() as Uint8Array);
  if (options.network !== undefined && options.network.name !== genesis.network)
    throw new StoreError(
      'store_genesis',
      `the data directory is of ${genesis.network}, not of ${options.network.name}`,
    );
  const state = store.state();
  const record = store.cut(state.height);
  const certificate = store.certificate(state.height);
  if (record === undefined || certificate === undefined)
    throw new StoreError('store_damaged', `cut ${state.height} is not in the store`);
  if (!equalBytes(record.header.stateRoot, stateRoot(encodeState(state))))
    throw new StoreError('store_damaged', `the state is not that of cut ${state.height}`);
  checkValueEquation(state);
  const committee = store.committee(epochOf(state.height, state.intervalCuts));
  // Cut 0 follows from the genesis document. The head of a node that was stopped while it synced may be a cut that the certificate of a later one proved before it was executed.
  if (certificate.signatures.length === 0) return { genesis, state, record, certificate };
  if (committee === undefined || !verifyCertificate(certificate, certifiable(state, committee, record.cutId)))
    throw new StoreError('store_damaged', `the certificate of cut ${state.height} does not verify`);
  return { genesis, state, record, certificate };
}

/** A cut and the committee that certifies it: for the last cut of an epoch that is not the committee in its state. */
export const certifiable = (
  { chainId, height }: Pick<LedgerState, 'chainId' | 'height'>,
  { members }: Committee,
  cutId: Bytes,
): Certifiable => ({ chainId, height, cutId, committee: members });
