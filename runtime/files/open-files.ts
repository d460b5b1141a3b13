/** How many files and connections a process may have open. A program that uses all of them up can neither write nor read its files, and ends. */
import { readFileSync } from 'node:fs';

/** Of the process with this number, or of this one. Infinity where the system sets no limit or does not say. */
export function openFilesLimit(process: string | number = 'self'): number {
  let limits = '';
  try {
    limits = readFileSync(`/proc/${process}/limits`, 'utf8');
  } catch {
    // It is another system, or the process is gone.
  }
  const [, soft = 'unlimited'] = /^Max open files\s+(\S+)/m.exec(limits) ?? [];
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

/** For files of a program's own, and for connections that it opens itself. */
const OWN_FILES = 2_048;

/** As many connections as the listeners of a process may admit: it may have one for miners, and a door beside it. */
export function roomForConnections(limit = openFilesLimit()): { readonly miners: number; readonly door: number } {
  const room = Math.max(limit / 2, limit - OWN_FILES);
  return { miners: Math.floor((room * 3) / 4), door: Math.floor(room / 4) };
}
