/** Before any test: what scripts/ready builds is there, also when vitest is started by hand. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BUILD_ENVIRONMENT, bringBuilds } from '../scripts/ready/build-steps.mjs';
import { runChild } from '../scripts/ready/carried-node.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const PROGRAMS = ['svcd', 'svc-wallet', 'svc-bridge', 'svc-pool', 'svc-miner'];

/**
 * Tests start the programs some hundred times. Node keeps what it compiled, which is half of a start; it writes that when a process
 * ends by itself, and many of these are killed, so each program ends once here.
 */
async function keepCompiled(): Promise<void> {
  const kept = join(ROOT, '.ready', 'compiled');
  const isNew = !existsSync(kept);
  process.env.NODE_COMPILE_CACHE = kept;
  if (!isNew) return;
  const start = (name: string) =>
    new Promise<void>((resolve) => {
      const child = spawn(process.execPath, [join(ROOT, 'bin', name), '--help'], { stdio: 'ignore' });
      child.once('error', () => resolve()).once('close', () => resolve());
    });
  await Promise.all(PROGRAMS.map(start));
}

export async function setup(): Promise<void> {
  // A run over planted faults keeps what was built without them (test/mutation).
  if (process.env.SVC_KEPT_BUILDS === undefined)
    await bringBuilds(ROOT, (command) => runChild(ROOT, process.execPath, command, BUILD_ENVIRONMENT));
  await keepCompiled();
}
