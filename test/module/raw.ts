/** The WebAssembly half alone, with randomness that the test decides: so its signatures can be compared byte by byte. */
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { utf8 } from '../../protocol/bytes.ts';
import { memoryOf, wasmBytes } from './load.ts';

type Calls = Record<string, (...numbers: number[]) => number>;

export type Raw = {
  readonly calls: Calls;
  readonly put: (at: number, bytes: Uint8Array) => void;
  readonly get: (at: number, length: number) => Uint8Array;
  random: Uint8Array;
};

export function startRaw(): Raw {
  const instance: WebAssembly.Instance = new WebAssembly.Instance(new WebAssembly.Module(wasmBytes()), {
    env: { random: (at: number, length: number) => memoryOf(instance).set(raw.random.subarray(0, length), at) },
  });
  const calls = instance.exports as unknown as Calls;
  const base = calls.exchange?.() as number;
  const raw: Raw = {
    calls,
    put: (at, bytes) => memoryOf(instance).set(bytes, base + at),
    get: (at, length) => memoryOf(instance).slice(base + at, base + at + length),
    random: new Uint8Array(32),
  };
  const list = calls.words?.() as number;
  for (const [i, word] of wordlist.entries()) memoryOf(instance).set(utf8(word), list + 8 * i);
  return raw;
}
