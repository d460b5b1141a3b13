/** Before any test: what scripts/ready builds is there, also when vitest is started by hand. */
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bringBuilds } from '../scripts/ready/build-steps.mjs';
import { runChild } from '../scripts/ready/carried-node.mjs';

export async function setup(): Promise<void> {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  await bringBuilds(root, (command) => runChild(root, process.execPath, command));
}
