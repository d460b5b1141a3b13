/**
 * ML-DSA-65, SHA-384, scrypt and the derivation of keys in WebAssembly against node:crypto, noble and the wallet: same bytes where they are determined, same verdicts
 * where they are not, for random keys and messages and for signatures with something changed.
 */
import { createHash, scryptSync } from 'node:crypto';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { expect, test } from 'vitest';
import vectors from '../../vectors/wallet.json' with { type: 'json' };
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { verifySignature } from '../../wallet/keys/signing.ts';
import { level, repeats, seed } from '../level.ts';
import { randomBytesOf } from '../random.ts';
import { wasmBytes } from './load.ts';
import { startRaw } from './raw.ts';

const randomBytes = randomBytesOf(seed);
const raw = startRaw();
const { calls } = raw;
const AT = { key: 0, signature: 2048, entropy: 6144, digest: 6272, passphrase: 8192, normal: 12_288, message: 20_480 };
const PUBLIC_KEY = 1952;
const SIGNATURE = 3309;

function open(entropy: Uint8Array, passphrase: string, network: number): number {
  const [text, normal] = [Buffer.from(passphrase), Buffer.from(passphrase.normalize('NFKD'))];
  raw.put(AT.entropy, entropy);
  raw.put(AT.passphrase, text);
  raw.put(AT.normal, normal);
  return calls.openRoot?.(AT.entropy, AT.passphrase, text.length, AT.normal, normal.length, network) as number;
}

function verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  raw.put(AT.key, publicKey);
  raw.put(AT.message, message);
  raw.put(AT.signature, signature);
  return calls.verify?.(AT.key, AT.message, message.length, AT.signature) === 1;
}

test('SHA-384 of every length around its blocks', () => {
  for (let length = 0; length < 400; length++) {
    const bytes = randomBytes(length);
    raw.put(AT.message, bytes);
    calls.sha384?.(AT.message, length, AT.digest);
    expect(Buffer.from(raw.get(AT.digest, 48))).toEqual(createHash('sha384').update(bytes).digest());
  }
});

test('scrypt', () => {
  for (const [password, salt, log2N] of [
    ['', Buffer.alloc(16), 10],
    ['correct horse battery staple', randomBytes(16), 12],
    ['x'.repeat(200), randomBytes(32), 10],
  ] as const) {
    const own = startRaw();
    own.put(0, Buffer.from(password));
    own.put(1000, salt);
    expect(own.calls.scrypt?.(0, password.length, 1000, salt.length, log2N, 2000)).toBe(1);
    const wanted = scryptSync(password, salt, 32, { N: 2 ** log2N, r: 8, p: 1, maxmem: 2 ** 28 });
    expect(Buffer.from(own.get(2000, 32))).toEqual(wanted);
    expect(own.get(0, password.length).every((byte) => byte === 0)).toBe(true);
  }
});

test('the keys of the wallet vectors', () => {
  const ids = { mainnet: 1, testnet: 2, testnet100: 3, development: 4 };
  for (const { entropy, passphrase, network, keys } of vectors.wallets) {
    const root = open(Buffer.from(entropy, 'hex'), passphrase, ids[network as keyof typeof ids]);
    for (const { account, branch, index, public_key_sha256 } of keys) {
      calls.derivePublicKey?.(root, account, branch === 'receive' ? 0 : 1, index, AT.key);
      expect(createHash('sha256').update(raw.get(AT.key, PUBLIC_KEY)).digest('hex')).toBe(public_key_sha256);
    }
    calls.freeRoot?.(root);
  }
});

test('random keys and messages: signatures byte by byte as noble makes them, and node:crypto takes them', () => {
  const entropy = randomBytes(32);
  const wallet = new WalletRoot(phraseOfEntropy(entropy), 'pass', 'development');
  const root = open(entropy, 'pass', 4);
  for (let i = 0; i < repeats({ full: 15, deep: 10_000 }); i++) {
    const path = {
      account: randomBytes(1)[0] as number,
      branch: 'change',
      index: randomBytes(4).readUInt32LE() >>> 1,
    } as const;
    const { publicKey, secretKey } = ml_dsa65.keygen(wallet.seed(path));
    calls.derivePublicKey?.(root, path.account, 1, path.index, AT.key);
    expect(Buffer.from(raw.get(AT.key, PUBLIC_KEY))).toEqual(Buffer.from(publicKey));
    const message = new Uint8Array(randomBytes(i % 3 === 0 ? 48 : randomBytes(2).readUInt16LE() >> 4));
    raw.random = i % 2 === 0 ? new Uint8Array(32) : new Uint8Array(randomBytes(32));
    raw.put(AT.message, message);
    calls.sign?.(root, path.account, 1, path.index, AT.message, message.length, AT.signature);
    const signature = raw.get(AT.signature, SIGNATURE);
    expect(Buffer.from(signature)).toEqual(
      Buffer.from(ml_dsa65.sign(message, secretKey, { extraEntropy: raw.random })),
    );
    expect(verifySignature(publicKey, message, signature)).toBe(true);
    expect(verify(publicKey, message, signature)).toBe(true);
  }
  calls.freeRoot?.(root);
});

test('signatures, keys and messages with something changed: the verdict of node:crypto and of noble', () => {
  const { publicKey, secretKey } = ml_dsa65.keygen(new Uint8Array(randomBytes(32)));
  const message = new Uint8Array(randomBytes(48));
  const signature = ml_dsa65.sign(message, secretKey);
  const change = (bytes: Uint8Array, at: number, to: number) => bytes.map((byte, i) => (i === at ? to : byte));
  const HINTS = 48 + 5 * 640;
  let refused = 0;
  const rounds = repeats({ full: 150, deep: 10_000 });
  for (let i = 0; i < rounds; i++) {
    const [at, byte] = [randomBytes(4).readUInt32LE(), randomBytes(1)[0] as number];
    // A third of the changes is in the hints: there one signature could have two spellings.
    const place = i % 3 === 0 ? HINTS + (at % (SIGNATURE - HINTS)) : at % SIGNATURE;
    const which = i % 5;
    const key = which === 3 ? change(publicKey, at % PUBLIC_KEY, byte) : publicKey;
    const text = which === 4 ? change(message, at % 48, byte) : message;
    const signed = which < 3 ? change(signature, place, byte) : signature;
    const verdict = verify(key, text, signed);
    expect(verdict, `round ${i}`).toBe(verifySignature(key, text, signed));
    if (level === 'deep' || i < 40) expect(verdict, `round ${i}`).toBe(ml_dsa65.verify(signed, text, key));
    if (!verdict) refused++;
  }
  expect(refused).toBeGreaterThan(rounds / 2);
  // Hints: too many, not ascending, something behind the last.
  for (const bytes of [
    change(signature, SIGNATURE - 1, 56),
    change(signature, SIGNATURE - 6, 55),
    change(signature, HINTS, signature[HINTS + 1] as number),
    signature.map((value, i) => (i >= HINTS ? 0xff : value)),
    new Uint8Array(SIGNATURE),
    new Uint8Array(SIGNATURE).fill(0xff),
  ])
    expect(verify(publicKey, message, bytes)).toBe(verifySignature(publicKey, message, bytes));
});

test('the emitted code divides nothing: no instruction in it takes a time that depends on what it works on', async () => {
  const { default: binaryen } = await import('binaryen');
  const module = binaryen.readBinary(wasmBytes());
  const text = module.emitText();
  module.dispose();
  expect(text).toContain('i64.mul');
  expect(text.match(/\b[if](?:32|64)\.(?:div|rem|sqrt)\w*/g)).toBeNull();
  expect(text.match(/\bf(?:32|64)\.\w+/g)).toBeNull();
  expect(text.match(/call_indirect|br_table/g)).toBeNull();
});

test('a place outside the exchange buffer is never read or written', () => {
  const end = calls.exchangeBytes?.() as number;
  for (const work of [
    () => calls.sha384?.(end - 10, 11, 0),
    () => calls.sha384?.(0, 0xffffffff, 0),
    () => calls.sha384?.(0, 1, end - 47),
    () => calls.verify?.(0, 0, 1, end - 100),
    () => calls.derivePublicKey?.(31, 0, 0, 0, 0),
    () => calls.derivePublicKey?.(-1, 0, 0, 0, 0),
    () => calls.sign?.(1_000_000, 0, 0, 0, 0, 1, 0),
    () => calls.scrypt?.(0, 1, 100, 16, 19, 200),
  ])
    expect(work).toThrow(WebAssembly.RuntimeError);
});
