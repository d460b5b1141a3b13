/**
 * `npm run pack:gpu -- DIR`: writes a folder whose bench.mjs and self-test.mjs run on a machine that has nothing but Node and
 * the package `webgpu`: two bundles, the .wgsl files, the WebAssembly modules, the vectors, and the CUDA yardstick to compile there.
 * DIR/programs holds node, bridge and miner as they are, for `node programs/test/bench/run.ts session`.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { packModules, packSources } from './packed-modules.ts';

const root = join(import.meta.dirname, '..');
const ENTRIES = { 'bench.mjs': 'test/bench/packed/bench.ts', 'self-test.mjs': 'test/bench/packed/self-test.ts' };
const COPIED: readonly { readonly folder: string; readonly ending: string }[] = [
  { folder: 'kernels/gpu', ending: '.wgsl' },
  { folder: 'build/kernels', ending: '.wasm' },
];

/** What node, bridge and miner are made of; Node runs the sources as they are. */
const PROGRAM_FILES = [
  'package.json',
  'bridge',
  'kernels',
  'miner',
  'node',
  'protocol',
  'runtime',
  'build/kernels',
  'test/bench/harness.ts',
  'test/bench/pow-gpu.ts',
  'test/bench/run.ts',
  'test/bench/session.bench.ts',
  'test/until.ts',
  'test/watch/programs.ts',
  'test/watch/quiet-time.ts',
  'test/watch/seen.ts',
  'test/watch/watch.ts',
];
const PROGRAM_MODULES = [
  '@noble/hashes',
  '@noble/post-quantum',
  '@scure/base',
  '@scure/bip39',
  'classic-level',
  'prom-client',
  'ws',
];

/** In the packed folder everything lies side by side. */
const besides = {
  name: 'besides',
  transform: (code: string): string => code.replaceAll("new URL('../../build/kernels/", "new URL('./"),
};

function packPrograms(target: string): void {
  packSources(root, PROGRAM_FILES, target);
  packModules(root, PROGRAM_MODULES, target);
}

async function pack(target: string): Promise<void> {
  mkdirSync(target, { recursive: true });
  for (const [output, input] of Object.entries(ENTRIES)) {
    const bundle = await rolldown({
      input: join(root, input),
      external: [/^node:/, 'webgpu'],
      platform: 'node',
      plugins: [besides],
    });
    await bundle.write({ file: join(target, output), format: 'esm', codeSplitting: false });
  }
  for (const { folder, ending } of COPIED)
    if (existsSync(join(root, folder)))
      for (const file of readdirSync(join(root, folder)).filter((name) => name.endsWith(ending)))
        copyFileSync(join(root, folder, file), join(target, file));
  copyFileSync(join(root, 'test/bench/pow.cu'), join(target, 'pow.cu'));
  copyFileSync(join(root, 'vectors/pow.json'), join(target, 'pow.json'));
  packPrograms(join(target, 'programs'));
  process.stdout.write(`${target}: ${readdirSync(target).sort().join(' ')}\n`);
}

const target = process.argv[2];
if (target === undefined) {
  process.stderr.write('usage: npm run pack:gpu -- DIR\n');
  process.exitCode = 2;
} else await pack(target);
