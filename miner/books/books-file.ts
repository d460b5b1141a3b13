/**
 * Storage of svc-miner's data about pools' books: DIR/books-NETWORK.json, a small file that is replaced as a whole, and
 * DIR/evidence-*.json, one for each finding that others can check. An unreadable file counts as absent: then counting
 * starts again.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { NetworkName } from '../../protocol/network.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import type { AlarmEvidence } from './books-alarms.ts';

/** Far more than the pools of a file need: if it became too large to be read, the keys of all pools would be lost. */
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

/**
 * Files of one kind about one pool. One is enough; a pool that repeatedly convicts itself must not fill the disk, and
 * the limit is separate for each kind and pool.
 */
export const MOST_EVIDENCE = 8;

export type EvidenceName = { readonly kind: string; readonly slice: string; readonly pool: string };

const plain = (text: string): string => text.replace(/[^A-Za-z0-9-]+/g, '-');

/**
 * Returns its path, or undefined if the limit of its kind is reached. The same evidence has the same name. One call at
 * a time.
 */
export async function writeEvidence(
  directory: string,
  { kind, slice, pool }: EvidenceName,
  evidence: AlarmEvidence,
): Promise<string | undefined> {
  const [start, end] = [plain(`evidence-${kind}-`), `${plain(`-${pool}`)}.json`];
  const name = `${start}${plain(slice)}${end}`;
  const kept = await readdir(directory).catch(() => []);
  const alike = kept.filter((file) => file.startsWith(start) && file.endsWith(end));
  if (alike.length >= MOST_EVIDENCE && !alike.includes(name)) return undefined;
  await writeDurably(join(directory, name), `${JSON.stringify(evidence, undefined, 1)}\n`);
  return join(directory, name);
}
