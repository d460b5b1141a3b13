/** Copies of a store that is open: as a process leaves it that is killed at that moment. */
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The store's own thread writes and removes files meanwhile, and a table that goes while the list of tables that names it is
 * copied would spoil the copy. So it is made again until the same files were there before and after.
 */
export function copyOpenStore(from: string, to: string): void {
  for (;;) {
    const names = readdirSync(from).sort();
    mkdirSync(to);
    if (copied(from, to, names) && readdirSync(from).sort().join() === names.join()) break;
    rmSync(to, { recursive: true });
  }
  rmSync(join(to, 'LOCK'));
}

function copied(from: string, to: string, names: readonly string[]): boolean {
  try {
    for (const name of names) copyFileSync(join(from, name), join(to, name));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** The log that is written to: an older one is there as well while its table is written. */
export function logOf(store: string): string {
  const logs = readdirSync(store).filter((name) => name.endsWith('.log'));
  return join(store, logs.sort().at(-1) as string);
}
