/**
 * Makes a directory and those above it that are missing, one at a time: Node's `recursive` never returns for a path
 * that cannot be created, such as one below /proc. An error of the system is thrown as it is.
 */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Whether the directory itself was made. */
export function makeDirectory(directory: string, mode?: number): boolean {
  const path = resolve(directory);
  if (isDirectory(path)) return false;
  const above = dirname(path);
  if (above !== path) makeDirectory(above, mode);
  try {
    mkdirSync(path, mode);
    return true;
  } catch (error) {
    // Another process was faster.
    if (isDirectory(path)) return false;
    throw error;
  }
}
