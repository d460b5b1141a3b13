/**
 * Stores which epochs were built recently for each pool, so that a restart does not give a lying pool a new allowance
 * (client/epoch-allowance.ts): DIR/epochs-NETWORK.json. An unreadable file counts as absent.
 */
import { join } from 'node:path';
import type { NetworkName } from '../../protocol/network.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import type { SavedAllowance } from '../client/epoch-allowance.ts';

const MOST_BYTES = 65_536;
const MOST_POOLS = 64;

const pathOf = (directory: string, network: NetworkName): string => join(directory, `epochs-${network}.json`);

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;

export function readEpochs(directory: string, network: NetworkName): SavedAllowance {
  try {
    const { pools } = JSON.parse(readSmallFile(pathOf(directory, network), MOST_BYTES)) as { pools: SavedAllowance };
    return Object.fromEntries(
      Object.entries(pools)
        .filter(([, { tokens, atMillis, paid }]) => isCount(tokens) && isCount(atMillis) && paid.every(isCount))
        .slice(0, MOST_POOLS),
    );
  } catch {
    return {};
  }
}

export async function writeEpochs(directory: string, network: NetworkName, pools: SavedAllowance): Promise<void> {
  await writeDurably(pathOf(directory, network), `${JSON.stringify({ pools })}\n`);
}
