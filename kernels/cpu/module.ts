/**
 * The compiled kernel. `npm start` and `npm test` build it to build/kernels; a bundler takes the two
 * files as assets because of the form of the URLs below. Runs in Node and in browsers.
 */
import { KernelError } from '../kernel-error.ts';

const SHARED = new URL('../../build/kernels/pow-shared.wasm', import.meta.url);
const SINGLE = new URL('../../build/kernels/pow-single.wasm', import.meta.url);

const loading = new Map<boolean, Promise<WebAssembly.Module>>();

async function read(url: URL): Promise<BufferSource> {
  if (url.protocol !== 'file:') {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
    return await answer.arrayBuffer();
  }
  const { readFile } = process.getBuiltinModule('node:fs/promises');
  return await readFile(url);
}

async function load(shared: boolean): Promise<WebAssembly.Module> {
  const url = shared ? SHARED : SINGLE;
  try {
    return await WebAssembly.compile(await read(url));
  } catch (error) {
    loading.delete(shared);
    throw new KernelError(
      'kernel_module_missing',
      `the CPU kernel cannot be loaded; run it through npm, which builds it (${(error as Error).message})`,
    );
  }
}

/** The module for shared memory, or the one for a plain memory. Compiled once. */
export function kernelModule(shared: boolean): Promise<WebAssembly.Module> {
  let module = loading.get(shared);
  if (module === undefined) {
    module = load(shared);
    loading.set(shared, module);
  }
  return module;
}
