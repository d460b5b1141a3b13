/**
 * Files that are made from others before anything runs. A step runs when its outputs are missing, or when the contents
 * of its inputs or its command are not those of its last run; contents, not times, because git does not keep times.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NotReady, say } from './say.mjs';

/**
 * @typedef {object} BuildStep
 * @property {string} name
 * @property {readonly string[]} inputs files and folders, from the root of the project
 * @property {readonly string[]} outputs
 * @property {readonly string[]} command words for Node: a script and its arguments
 */

/** @type {readonly BuildStep[]} */
export const BUILD_STEPS = [
  {
    name: 'cpu-kernel',
    inputs: ['kernels/cpu/assembly', 'scripts/build-kernels.mjs'],
    outputs: ['build/kernels/pow-shared.wasm', 'build/kernels/pow-single.wasm'],
    command: ['scripts/build-kernels.mjs'],
  },
  {
    name: 'svc-wasm',
    inputs: [
      'module',
      'protocol',
      'scripts/build-module.mjs',
      'scripts/module-options.mjs',
      'LICENSE',
      'package.json',
      'package-lock.json',
    ],
    outputs: ['build/svc-wasm/svc_wasm.js', 'build/svc-wasm/svc_wasm_bg.wasm', 'build/svc-wasm/release.json'],
    command: ['scripts/build-module.mjs'],
  },
  {
    name: 'dashboard',
    inputs: [
      'dashboard',
      'kernels',
      'miner',
      'module',
      'protocol',
      'pool/api/documents.ts',
      'runtime',
      'package-lock.json',
    ],
    outputs: ['build/dashboard/index.html', 'build/dashboard/explorer.html'],
    command: ['node_modules/vite/bin/vite.js', 'build', '-c', 'dashboard/vite.config.ts', '--logLevel', 'warn'],
  },
];

/**
 * Of every step. Without it, one that runs below a test or a development server would build a page for developers, with the paths of
 * this machine in it, and the next run would keep that.
 */
export const BUILD_ENVIRONMENT = Object.freeze({ NODE_ENV: 'production' });

/**
 * @param {string} root
 * @param {(command: readonly string[]) => Promise<number>} run
 */
export async function bringBuilds(root, run, steps = BUILD_STEPS, tell = say) {
  for (const step of steps) {
    const stamp = join(root, '.ready', `${step.name}.hash`);
    const hash = hashInputs(root, step);
    const made = step.outputs.every((output) => existsSync(join(root, output)));
    if (made && existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) continue;
    tell(`building ${step.name}`);
    if ((await run(step.command)) !== 0) throw new NotReady(`building ${step.name} failed (its reasons are above)`);
    mkdirSync(join(root, '.ready'), { recursive: true });
    writeFileSync(stamp, hash);
  }
}

/**
 * @param {string} root
 * @param {BuildStep} step
 */
function hashInputs(root, step) {
  const hash = createHash('sha256').update(JSON.stringify([step, BUILD_ENVIRONMENT]));
  for (const input of step.inputs)
    for (const file of filesOf(root, input)) {
      hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
    }
  return hash.digest('hex');
}

/**
 * @param {string} root
 * @param {string} path
 * @returns {string[]}
 */
function filesOf(root, path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesOf(root, join(path, name)));
}
