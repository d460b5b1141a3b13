/**
 * Compiles the CPU kernel (kernels/cpu/assembly) to build/kernels: one module for shared memory, one for a plain
 * memory. A step of scripts/ready/build-steps.mjs.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { main } from 'assemblyscript/asc';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const output = join(root, 'build/kernels');

const COMMON = ['-O3', '--noAssert', '--runtime', 'stub', '--enable', 'simd', '--importMemory', '--memoryBase', '1024'];
const BUILDS = {
  'pow-shared.wasm': ['--enable', 'threads', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
  'pow-single.wasm': ['--initialMemory', '1'],
};

mkdirSync(output, { recursive: true });
for (const [name, options] of Object.entries(BUILDS)) {
  /** @type {(string | Uint8Array)[]} */
  const written = [];
  const source = join(root, 'kernels/cpu/assembly/index.ts');
  const { error, stderr } = await main([source, '--outFile', name, ...COMMON, ...options], {
    writeFile: (_file, content) => void written.push(content),
  });
  if (error) throw new Error(`${error.message}\n${stderr.toString()}`);
  // Written under another name and renamed, so that a reader never sees half a file.
  const temporary = join(output, `${name}.${process.pid}`);
  writeFileSync(temporary, /** @type {Uint8Array} */ (written[0]));
  renameSync(temporary, join(output, name));
}
