/** Files that a command writes for another program. One that exists is never replaced: a node may be running from it. */
import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { createDurably } from '../../runtime/files/durable-file.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import { WalletError } from '../wallet-error.ts';
import { PRIVATE_MODE } from './private-file.ts';

/** A dangling link counts as existing. If the check fails, the write will report why. */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

const taken = (path: string) =>
  new WalletError('file_exists', `${path} exists: nothing is overwritten; name another file, or move it away`, {
    path,
  });

export function refuseTaken(path: string): void {
  if (isThere(path)) throw taken(path);
}

export async function createFile(path: string, text: string, mode = PRIVATE_MODE): Promise<void> {
  let made: boolean;
  try {
    makeDirectory(dirname(path), 0o700);
    made = await createDurably(path, text, mode);
  } catch (error) {
    throw new WalletError('file_unwritable', `${path} cannot be written: ${(error as Error).message}`, { path });
  }
  if (!made) throw taken(path);
}
