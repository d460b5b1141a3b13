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

/** As many connections as a listener may admit. */
export const roomForConnections = (limit = openFilesLimit()): number =>
  Math.floor(Math.max(limit / 2, limit - OWN_FILES));
