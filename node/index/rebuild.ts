/**
 * `svcd rebuild-index`: makes the address index again from the blocks in the store. Every cut since genesis is executed
 * a second time into a scratch store, which must end in the same cut identifiers, so a rebuild is also a check of the
 * whole chain. The new index then replaces the old one; until its last record is written the API answers `not_ready`.
 */

import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { CodedError } from '../../protocol/coded-error.ts';
import { decodeGenesis, encodeGenesis } from '../../protocol/ledger/genesis.ts';
import { NETWORKS } from '../../protocol/network.ts';
import type { BlockRecord, CutRecord } from '../full-node.ts';
import { applyCut, type LedgerView } from '../ledger/apply-cut.ts';
import { genesisCut } from '../ledger/genesis-cut.ts';
import { findOutput } from '../ledger/output-set.ts';
import type { LedgerState } from '../ledger/state.ts';
import { readTransaction, readWorkBlock } from '../ledger/work-block.ts';
import { VerifiedTransactions } from '../mempool/witness-check.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { addressIndex } from './address-index.ts';
import { HEAD_KEY, INDEX_NAME } from './index-keys.ts';

export const INDEX_ERROR_CODES = ['index_body_missing', 'index_chain_differs'] as const;

export class IndexError extends CodedError<(typeof INDEX_ERROR_CODES)[number]> {
  override readonly name = 'IndexError';
}

function blocksOf(store: LedgerStore, cut: CutRecord, chainId: Bytes) {
  return cut.blockIds.map((id) => {
    const record = store.block(id);
    const body = store.body(id);
    if (record === undefined || body === undefined)
      throw new IndexError(
        'index_body_missing',
        `the bodies of cut ${cut.header.height} were pruned: rebuild from a store that has them all`,
      );
    const block = readWorkBlock(record.header, body, (wire) => readTransaction(wire, chainId));
    return { ...block, hash: new Uint8Array(32), record };
  });
}

function viewOf(scratch: LedgerStore, state: LedgerState, cutId: Bytes, networkId: number): LedgerView {
  return {
    state,
    cutId,
    networkId,
    ...scratch.sets(state),
    output: (outpoint) => findOutput(scratch.outputTrie, state.outputs, outpoint),
    spender: (outpoint) => scratch.spender(outpoint),
    isExecuted: (id) => scratch.transaction(id)?.outcome === 'executed',
    publicKey: (address) => scratch.publicKey(address),
    isRegistered: (id) => scratch.block(id)?.registeredHeight !== undefined,
  };
}

const unregistered = ({ registeredHeight: _, ...record }: BlockRecord): BlockRecord => ({
  ...record,
  reward: { state: 'waiting' },
});

/** The scratch store is deleted afterwards: certificates are not needed. */
const UNSIGNED = { round: 0, signatures: [] };

export type Progress = (height: number, of: number) => void;

/** `scratch` is an empty store; it can be deleted afterwards. */
export async function rebuildIndex(store: LedgerStore, scratch: LedgerStore, progress: Progress): Promise<number> {
  if (store.beganAt() >= 0)
    throw new IndexError(
      'index_body_missing',
      `this data directory began with a snapshot of cut ${store.beganAt()}: rebuild from one that has the whole chain`,
    );
  const genesis = decodeGenesis(store.genesis() as Uint8Array);
  const head = store.state().height;
  const networkId = NETWORKS[genesis.network].id;
  const { check } = new VerifiedTransactions();
  let cut = genesisCut(genesis, scratch.tries);
  await scratch.commit(cut, UNSIGNED, [addressIndex], encodeGenesis(genesis));
  const same = (record: CutRecord | undefined): record is CutRecord =>
    record !== undefined && equalBytes(record.cutId, cut.effects.cutId);
  for (let height = 1; height <= head; height++) {
    const record = store.cut(height);
    if (record === undefined) throw new IndexError('index_chain_differs', `cut ${height} is not in the store`);
    const blocks = blocksOf(store, record, cut.effects.chainId);
    for (const { record: block, bodyBytes, hash } of blocks)
      await scratch.addWaiting(unregistered(block), bodyBytes, hash);
    cut = applyCut(
      viewOf(scratch, cut.state, cut.effects.cutId, networkId),
      {
        timestampMillis: record.header.timestampMillis,
        signers: record.header.signers,
        blocks,
        expired: [],
        lost: () => [],
      },
      check,
    );
    if (!same(record))
      throw new IndexError('index_chain_differs', `cut ${height} executed again is another cut: the store is damaged`);
    await scratch.commit(cut, UNSIGNED, [addressIndex]);
    progress(height, head);
  }
  await store.replaceIndex(INDEX_NAME, HEAD_KEY, scratch);
  return head;
}
