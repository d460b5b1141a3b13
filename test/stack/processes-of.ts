import { readdirSync, readFileSync } from 'node:fs';

/** The command lines of the processes that name a data directory. */
export const processesOf = (data: string): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return line.includes(data) ? [line] : [];
      } catch {
        return [];
      }
    });
