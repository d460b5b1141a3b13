/**
 * Checkpoints: cuts that are trusted from outside the chain, from the release or from the operator (`--checkpoint`).
 * Keys that were sold after the unbonding time can sign a different history; a chain that contradicts a checkpoint is
 * refused, whatever its signatures (network rule 16).
 */
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Chain } from '../full-node.ts';
import { NetworkError } from '../network/network-error.ts';
import { StoreError } from '../store/ledger-store.ts';

export type Checkpoint = { readonly height: number; readonly cutId: Bytes };

/** Checkpoints of this release. The public networks have no chain yet, and each development network has its own. */
const OF_RELEASE: Readonly<Record<NetworkName, readonly Checkpoint[]>> = {
  mainnet: [],
  testnet: [],
  testnet100: [],
  development: [],
};

/** Ascending, each height once. Throws where two name different cuts of a height. */
export function checkpointsOf(network: NetworkName, named: readonly Checkpoint[]): readonly Checkpoint[] {
  const all = new Map<number, Checkpoint>();
  for (const checkpoint of [...OF_RELEASE[network], ...named]) {
    const known = all.get(checkpoint.height);
    if (known !== undefined && !equalBytes(known.cutId, checkpoint.cutId))
      throw new NetworkError('p2p_config', `two checkpoints name different cuts of height ${checkpoint.height}`);
    all.set(checkpoint.height, checkpoint);
  }
  return [...all.values()].sort((a, b) => a.height - b.height);
}

/** The first at this height or above it. */
export const nextCheckpoint = (checkpoints: readonly Checkpoint[], height: number): Checkpoint | undefined =>
  checkpoints.find((checkpoint) => checkpoint.height >= height);

/** Why a cut cannot be the one of its height; undefined if no checkpoint contradicts it. */
export function contradictionOf(
  checkpoints: readonly Checkpoint[],
  { height, cutId }: Pick<Checkpoint, 'height' | 'cutId'>,
): string | undefined {
  const named = checkpoints.find((checkpoint) => checkpoint.height === height);
  if (named === undefined || equalBytes(named.cutId, cutId)) return undefined;
  return `cut ${height} is ${toHex(cutId)}, and the checkpoint is ${toHex(named.cutId)}: compare the checkpoint with nodes that you trust`;
}

/** Throws if the chain of a data directory has another cut. Cuts before a snapshot cannot be compared. */
export function checkStoredChain(chain: Pick<Chain, 'cut'>, checkpoints: readonly Checkpoint[]): void {
  for (const { height, cutId } of checkpoints) {
    const own = chain.cut(height)?.cutId;
    if (own !== undefined && !equalBytes(own, cutId))
      throw new StoreError(
        'store_checkpoint',
        `cut ${height} of this data directory is ${toHex(own)}, and the checkpoint is ${toHex(cutId)}: compare it with nodes that you trust; if the checkpoint is right, sync into a new data directory`,
      );
  }
}
