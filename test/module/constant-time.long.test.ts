/**
 * The shipped WebAssembly takes the same branches and touches the same addresses whatever the secret is (module/README.md, Secrets). Exceptions are listed with their reasons: what is public, the rejection sampling of FIPS 203 and
 * 204, and the words of a phrase. What an engine makes of the code, and how long an instruction takes, this cannot tell.
 */
import { randomBytes } from 'node:crypto';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { beforeAll, expect, test } from 'vitest';
import { utf8 } from '../../protocol/bytes.ts';
import { count } from '../level.ts';
import { wasmBytes } from './load.ts';
import { codeOf, namedBuild, type Site, traced } from './traced-wasm.ts';

const AT = { key: 0, addresses: 64, secret: 256, out: 2048, text: 4096, entropy: 6144, nonce: 6208, more: 6400 };
const NETWORK = 4;

type Calls = Readonly<Record<string, (...numbers: number[]) => number>>;
type Trace = { readonly hashes: Int32Array; readonly times: Int32Array };

let named: Uint8Array;
let sites: readonly Site[] = [];
let calls: Calls;
let memory: WebAssembly.Memory;
let [hashes, times] = [new Int32Array(0), new Int32Array(0)];

const put = (at: number, bytes: Uint8Array) => new Uint8Array(memory.buffer).set(bytes, at);
const given = (at: number, bytes: Uint8Array) => put((calls.exchange?.() as number) + at, bytes);
const call = (name: string, ...numbers: number[]): number => calls[name]?.(...numbers) as number;

beforeAll(async () => {
  named = await namedBuild();
  const made = traced(named);
  sites = made.sites;
  hashes = new Int32Array(sites.length);
  times = new Int32Array(sites.length);
  const tell = (site: number, value: number): number => {
    hashes[site] = (Math.imul((hashes[site] as number) ^ value, 0x01000193) + 1) | 0;
    times[site] = (times[site] as number) + 1;
    return value;
  };
  const random = (at: number, length: number) => put(at, new Uint8Array(length));
  const instance = new WebAssembly.Instance(new WebAssembly.Module(made.wasm as Uint8Array<ArrayBuffer>), {
    env: { tell, random },
  });
  calls = instance.exports as unknown as Calls;
  memory = instance.exports.memory as WebAssembly.Memory;
  for (const [i, word] of wordlist.entries()) put(call('words') + 8 * i, utf8(word));
});

function openRoot(): number {
  given(AT.entropy, randomBytes(32));
  return call('openRoot', AT.entropy, AT.text, 0, AT.text, 0, NETWORK);
}

function trace(work: () => void): Trace {
  hashes.fill(0);
  times.fill(0);
  work();
  return { hashes: hashes.slice(), times: times.slice() };
}

/** In how many places of each function the traces are not one. */
function differences(traces: readonly Trace[]): Record<string, number> {
  const found: Record<string, number> = {};
  const [first, ...others] = traces as [Trace, ...Trace[]];
  for (const [i, { of }] of sites.entries())
    if (others.some((other) => other.hashes[i] !== first.hashes[i])) {
      const name = of.replace('$module/assembly/', '');
      found[name] = (found[name] ?? 0) + 1;
    }
  return found;
}

/** Sampling that throws away more needs one more block of SHAKE, now and then: traces with as many blocks as the first are compared. */
function sameBlocks(wanted: number, next: () => Trace | undefined): Trace[] {
  const blocks = sites.findIndex(({ of }) => of.endsWith('keccak/permute'));
  const byBlocks = new Map<number, Trace[]>();
  for (;;) {
    const one = next();
    if (one === undefined) continue;
    const same = [...(byBlocks.get(one.times[blocks] as number) ?? []), one];
    byBlocks.set(one.times[blocks] as number, same);
    if (same.length === wanted) return same;
  }
}

/** Places of a function that may differ, at most. */
type Allowed = Readonly<Record<string, number>>;

function expectSame(work: () => () => void, allowed: Allowed): void {
  const traces = sameBlocks(count({ full: 3, deep: 20 }), () => trace(work()));
  expect(traces[0]?.times.some((one) => one > 0)).toBe(true);
  const found = differences(traces);
  for (const [name, places] of Object.entries(found))
    expect(places, `${name} differs by the secret`).toBeLessThanOrEqual(allowed[name] ?? 0);
}

const withRoot = (work: (handle: number) => () => void) => (): (() => void) => {
  const handle = openRoot();
  const run = work(handle);
  return () => {
    run();
    call('freeRoot', handle);
  };
};

/** The key of somebody else: public, and the same for all secrets. */
function peerKey(): Uint8Array {
  const handle = openRoot();
  call('messengerKey', handle, AT.addresses, AT.out);
  call('freeRoot', handle);
  const at = call('exchange') + AT.out;
  return new Uint8Array(memory.buffer).slice(at, at + 1184);
}

test('what is looked at is what is shipped', () => {
  expect(codeOf(named).equals(codeOf(wasmBytes()))).toBe(true);
  expect(sites.filter(({ what }) => /div|rem/.test(what))).toEqual([]);
  expect(sites.length).toBeGreaterThan(1000);
});

test('a place that depends on a secret is found', () => {
  // The word list is asked for places that the entropy chooses.
  const traces = [1, 2].map(() => trace(() => call('freeRoot', openRoot())));
  expect(Object.keys(differences(traces))).toContain('roots/phrase');
});

test('opening a root: the words of the phrase, which are text, and their length; nothing else', () => {
  expectSame(() => () => void call('freeRoot', openRoot()), {
    'roots/phrase': 4,
    'sha2/finish<u64>': 4,
    'sha2/blocks<u64>': 4,
    'hmac/key512': 4,
  });
});

// sampleMatrix makes the matrix of the public key; makeKey throws away half-bytes of 9 and more on the way to s1 and s2 (algorithm 31), which says how many there
// were, and nothing of those that stay.
const KEY_MAKING: Allowed = { 'dsa-sampling/sampleMatrix': 3, 'dsa/makeKey': 6 };

test('deriving a key', () => {
  expectSame(
    withRoot((handle) => () => void call('derivePublicKey', handle, 0, 0, 0, AT.key)),
    KEY_MAKING,
  );
});

test('signing, for secrets whose first attempt is good: the challenge and the hints are part of the signature', () => {
  const attempts = sites.findIndex(({ of, what }) => of.endsWith('sampleChallenge') && what === 'memory.fill');
  const hints = sites.findIndex(({ of, what }) => of.endsWith('dsa/hint') && what === 'memory.fill');
  const traces = sameBlocks(count({ full: 2, deep: 12 }), () => {
    const handle = openRoot();
    const one = trace(() => call('sign', handle, 0, 0, 0, AT.text, 48, AT.out));
    call('freeRoot', handle);
    return one.times[attempts] === 1 && one.times[hints] === 1 ? one : undefined;
  });
  const found = differences(traces);
  const allowed: Allowed = { ...KEY_MAKING, 'dsa-sampling/sampleChallenge': 12, 'dsa/hint': 6 };
  for (const [name, places] of Object.entries(found))
    expect(places, `${name} differs by the secret`).toBeLessThanOrEqual(allowed[name] ?? 0);
});

// multiplyMatrixRow samples the matrix of a public key (FIPS 203, algorithm 7) on the way.
const MATRIX: Allowed = { 'kem/multiplyMatrixRow': 6 };

test('messenger: keys, accepting, opening a chat from both sides, writing and reading', () => {
  expectSame(
    withRoot((handle) => () => void call('messengerKey', handle, AT.addresses, AT.out)),
    MATRIX,
  );
  const key = peerKey();
  const asAccepter = (handle: number) => {
    given(AT.secret, key);
    return () => void call('openChat', handle, 0, AT.key, AT.addresses, AT.secret);
  };
  expectSame(
    withRoot((handle) => {
      given(AT.secret, key);
      return () => void call('messengerAccept', handle, AT.key, AT.secret, AT.out);
    }),
    {},
  );
  expectSame(withRoot(asAccepter), {});
  // The key is the wallet's own here, and its matrix another each time. A false ciphertext takes the same way as a good one.
  expectSame(
    withRoot((handle) => {
      given(AT.secret, randomBytes(1088));
      return () => void call('openChat', handle, 1, AT.key, AT.addresses, AT.secret);
    }),
    MATRIX,
  );
  const opened = (handle: number) => {
    asAccepter(handle)();
    given(AT.text, randomBytes(24 + 100 + 16));
  };
  expectSame(
    withRoot((handle) => {
      opened(handle);
      return () => void call('sealMessage', 0, AT.text, 100);
    }),
    {},
  );
  expectSame(
    withRoot((handle) => {
      opened(handle);
      return () => void call('openMessage', 0, AT.text, 100);
    }),
    {},
  );
});

test('sealing a wallet file: AES and GHASH use no table', () => {
  expectSame(
    withRoot((handle) => {
      given(AT.key, randomBytes(32));
      return () => void call('sealRoot', handle, AT.key, AT.nonce, AT.more, 20, AT.text, 2, 20_480);
    }),
    {},
  );
});
