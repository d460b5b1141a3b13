/** The built package, as a user loads it, and the instances of its WebAssembly half, whose memory tests look into. */
import { readFileSync } from 'node:fs';
import type * as SvcWasm from '../../module/package/index.d.ts';

export const PACKAGE = new URL('../../build/svc-wasm/', import.meta.url);
const { Instance } = WebAssembly;
export const instances: WebAssembly.Instance[] = [];

class Watched extends Instance {
  constructor(module: WebAssembly.Module, imports?: WebAssembly.Imports) {
    super(module, imports);
    if (WebAssembly.Module.exports(module).some(({ name }) => name === 'openSealed')) instances.push(this);
  }
}

export type Module = typeof SvcWasm;

let loading: Promise<Module> | undefined;

/** Once for a test file. The files share a process, so each takes a copy of its own. */
export function loadModule(): Promise<Module> {
  loading ??= load();
  return loading;
}

async function load(): Promise<Module> {
  const copy = new URL(`svc_wasm.js?${performance.now()}`, PACKAGE);
  const module = (await import(/* @vite-ignore */ copy.href)) as Module;
  WebAssembly.Instance = Watched as unknown as typeof WebAssembly.Instance;
  await module.default();
  return module;
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
