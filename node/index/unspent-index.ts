/**
 * The address index of a node that begins with a snapshot: balances and unspent outputs follow from the output set, registered keys from the registry. When each was made is not known: all are of the
 * snapshot's cut. Changes before it are in no history.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { UnspentOutput } from '../full-node.ts';
import { nameOf } from '../ledger/registration.ts';
import type { BatchOp } from '../store/batch.ts';
import type { StoreReader } from '../store/cut-indexer.ts';
import { decodeBalance, encodeBalance, encodeHead, encodeUnspent } from './address-index.ts';
import { HEAD_KEY, key, outpointKey, SPACES } from './index-keys.ts';

/** Adds these outputs to the index that `reader` reads. */
export function unspentOperations(
  outputs: readonly UnspentOutput[],
  height: number,
  reader: Pick<StoreReader, 'get'>,
): BatchOp[] {
  const operations: BatchOp[] = [];
  const balances = new Map<string, { readonly address: Bytes; atoms: bigint; utxos: number }>();
  for (const output of outputs) {
    const { address, amount, outpoint } = output;
    const at = key(SPACES.unspent, address, outpointKey(outpoint));
    operations.push({ type: 'put', key: at, value: encodeUnspent(output, height) });
    const name = nameOf(address);
    const known = balances.get(name) ?? { address, ...decodeBalance(reader.get(key(SPACES.balance, address))) };
    balances.set(name, { address, atoms: known.atoms + amount, utxos: known.utxos + 1 });
  }
  for (const { address, atoms, utxos } of balances.values()) {
    const value = encodeBalance({ atoms, utxos, changed: height }, []);
    operations.push({ type: 'put', key: key(SPACES.balance, address), value });
  }
  return operations;
}

export const registeredKeyOperation = (address: Bytes, height: number): BatchOp => ({
  type: 'put',
  key: key(SPACES.key, address),
  value: encodeHead(height),
});

/** Marks the index as complete at this cut. */
export const indexedOperation = (height: number): BatchOp => ({
  type: 'put',
  key: HEAD_KEY,
  value: encodeHead(height),
});
