/**
 * The newest shares of a journal: what a process may have been writing when it ended
 * (bridge/session/session-log.ts). An entry counts as it counts for the books, whether it was synced and answered or not.
 */
import { toHex } from '../../protocol/bytes.ts';
import { journalBoots, journalSegments, readSegment } from './journal.ts';
import { identityOfShare } from './journal-record.ts';

/** What waits for the disk, and what is being written, fits into two segments; the newest may have just begun. */
const SEGMENTS = 3;

/** Those of the wanted identities, in hex, that are there. */
export async function sharesAtEnds(
  directory: string,
  boots: readonly string[],
  wanted: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const kept = await journalBoots(directory);
  for (const bootId of boots.filter((boot) => kept.includes(boot)))
    for (const segment of (await journalSegments(directory, bootId)).slice(-SEGMENTS))
      for (const { record } of await readSegment(directory, bootId, segment)) {
        const identity = identityOfShare(record);
        const name = identity === undefined ? '' : toHex(identity);
        if (wanted.has(name)) found.add(name);
      }
  return found;
}
