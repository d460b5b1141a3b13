/** The built package, as a user loads it, and the instances of its WebAssembly half, whose memory tests look into. */
import { readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import type * as SvcWasm from '../../module/package/index.d.ts';

export const PACKAGE = new URL('../../build/svc-wasm/', import.meta.url);
export type Module = typeof SvcWasm;

let loading: Promise<Module> | undefined;

export function loadModule(): Promise<Module> {
  loading ??= loadCopy();
  return loading;
}

/** Another address, another copy, with roots and memory of its own. */
export async function loadCopy(): Promise<Module> {
  const copy = new URL(`svc_wasm.js?${performance.now()}`, PACKAGE);
  const module = (await import(/* @vite-ignore */ copy.href)) as Module;
  await module.default();
  return module;
}

/**
 * A copy for one test, and every instance that it makes until the test ends: the first is its main one. Instances of other code (Node's own parsers are
 * WebAssembly too, and start when they are first needed) are left out. `change` replaces exports of the instance with that number.
 */
export async function watchedModule(
  change: (number: number, exports: WebAssembly.Exports) => WebAssembly.Exports = () => ({}),
): Promise<{ module: Module; instances: readonly WebAssembly.Instance[] }> {
  const { Instance } = WebAssembly;
  const instances: WebAssembly.Instance[] = [];
  class Watched extends Instance {
    constructor(module: WebAssembly.Module, imports?: WebAssembly.Imports) {
      super(module, imports);
      if ('scrypt' in super.exports) instances.push(this);
    }
    override get exports(): WebAssembly.Exports {
      const number = instances.indexOf(this);
      return number < 0 ? super.exports : { ...super.exports, ...change(number, super.exports) };
    }
  }
  onTestFinished(() => {
    WebAssembly.Instance = Instance;
  });
  WebAssembly.Instance = Watched as unknown as typeof Instance;
  return { module: await loadCopy(), instances };
}

export const wasmBytes = (): Uint8Array<ArrayBuffer> =>
  new Uint8Array(readFileSync(new URL('svc_wasm_bg.wasm', PACKAGE)));

export const memoryOf = (instance: WebAssembly.Instance): Uint8Array =>
  new Uint8Array((instance.exports.memory as WebAssembly.Memory).buffer);

export function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    const { code } = error as { code?: unknown };
    return typeof code === 'string' ? code : `no code: ${String(error)}`;
  }
  return 'nothing refused';
}
