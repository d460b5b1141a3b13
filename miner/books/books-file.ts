/**
 * Where svc-miner keeps what it knows of pools' books: DIR/books-NETWORK.json, a small file that is replaced as a whole, and DIR/evidence-*.json, one for each
 * thing that the pool's own signature shows. What cannot be read counts as absent: then the count begins anew.
 */
import { join } from 'node:path';
import type { NetworkName } from '../../protocol/network.ts';
import type { Evidence } from '../../protocol/receipt-evidence.ts';
import { writeDurably } from '../../runtime/durable-file.ts';
import { readSmallFile } from '../../runtime/small-file.ts';

/** Far more than all pools of a file come to: one that is too large to be read would take the keys of all of them with it. */
const MOST_BYTES = 64 * 1024 * 1024;

export type SavedBooks = Readonly<Record<string, unknown>>;

const pathOf = (directory: string, network: NetworkName): string => join(directory, `books-${network}.json`);

export function readBooks(directory: string, network: NetworkName): SavedBooks {
  try {
    const { pools } = JSON.parse(readSmallFile(pathOf(directory, network), MOST_BYTES)) as { pools: SavedBooks };
    return typeof pools === 'object' && pools !== null ? pools : {};
  } catch {
    return {};
  }
}

export const writeBooks = (directory: string, network: NetworkName, pools: SavedBooks): Promise<void> =>
  writeDurably(pathOf(directory, network), `${JSON.stringify({ pools })}\n`);

/** Returns where it lies. The same evidence has the same name. */
export async function writeEvidence(directory: string, name: string, evidence: Evidence): Promise<string> {
  const path = join(directory, `evidence-${name.replace(/[^A-Za-z0-9-]+/g, '-')}.json`);
  await writeDurably(path, `${JSON.stringify(evidence, undefined, 1)}\n`);
  return path;
}
