/**
 * The form of those files of a data directory that carry no version themselves (docs/formats.md): the file `KIND.format` holds its number. A
 * release raises it with any change that releases of before would misread, and brings a directory to its own form when it opens it. An older
 * release refuses such a directory and changes nothing in it.
 */
import { join } from 'node:path';
import { RuntimeError } from '../runtime-error.ts';
import { createDurably } from './durable-file.ts';
import { readSmallFile } from './small-file.ts';

export const DIRECTORY_FORMATS = { miner: 1, pool: 1 } as const;
export type DirectoryKind = keyof typeof DIRECTORY_FORMATS;

/** To be called before anything in the directory is read. One of a release from before these files is of form 1. */
export async function claimFormat(directory: string, kind: DirectoryKind): Promise<void> {
  const path = join(directory, `${kind}.format`);
  const known = DIRECTORY_FORMATS[kind];
  const present = presentFormat(path);
  if (present === undefined)
    // A directory that nothing can be written to needs no number.
    await createDurably(path, `${known}\n`).catch(() => false);
  else if (Number.isNaN(present))
    throw new RuntimeError(
      'directory_unusable',
      `${path} holds no number: the disk has changed it. If no release after this one wrote to the directory, write ${known} into it; otherwise run that release again`,
    );
  else if (present > known)
    throw new RuntimeError(
      'directory_newer',
      `${directory} was written by a newer release (${path} says ${present}, this release knows ${known}): run that release again, or restore the backup of before the upgrade into a new data directory`,
    );
}

function presentFormat(path: string): number | undefined {
  try {
    const text = readSmallFile(path).trim();
    return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
