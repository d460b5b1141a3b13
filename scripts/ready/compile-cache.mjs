/**
 * Node keeps compiled code (NODE_COMPILE_CACHE) under the name of the source file and never removes any: what was
 * renamed, deleted or compiled by an earlier Node stays. Deleting it costs only half a second at the next start.
 */
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Of the programs (bin/launch.mjs), and of the tests (test/builds.ts). */
export const COMPILE_CACHES = ['build/compile-cache', '.ready/compiled'];

/** Three times what all programs and tests of one version take. */
const MOST_BYTES = 96 * 1024 * 1024;

/** @param {string} root */
export function boundCompileCaches(root, most = MOST_BYTES) {
  for (const path of COMPILE_CACHES.map((name) => join(root, name)))
    if (existsSync(path) && sizeOf(path) > most) rmSync(path, { recursive: true, force: true });
}

/**
 * @param {string} folder
 * @returns {number}
 */
function sizeOf(folder) {
  let sum = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    try {
      sum += entry.isDirectory() ? sizeOf(path) : statSync(path).size;
    } catch {
      // A program that runs has replaced it meanwhile.
    }
  }
  return sum;
}
