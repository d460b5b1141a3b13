/**
 * The reference of SVC_POW_V1 (docs/protocol/pow.md, rules P1 to P12), written to be read beside that text: light mode,
 * slow and simple, with a function for every intermediate stage. It defines what a hash is; the kernels only make it
 * fast. P13, comparing with a target, is in target.ts; P3, the epoch of a height, in network.ts. Words are u32 in
 * little-endian order, which is also the order of every machine this runs on.
 */
import { blake3 } from '@noble/hashes/blake3.js';
import { type Bytes, ByteWriter, concat, equalBytes, utf8 } from '../bytes.ts';
import { HEADER_BYTES, NONCE_OFFSET } from '../ledger/header.ts';
import type { Network } from '../network.ts';
import { POW_CACHE_PASSES, POW_ITEM_PARENTS, POW_ROUNDS } from './pow-counts.ts';

/** What P2 fixes for a network: its id, log2 of the cache items (64 B) and log2 of the pages (128 B). */
export type PowParameters = { readonly networkId: number; readonly cacheLog2: number; readonly pagesLog2: number };

export const powParameters = (network: Network): PowParameters => ({ networkId: network.id, ...network.pow });

export const POW_LABEL = 'SVC_POW_V1';

const FNV_PRIME = 0x01000193;

const xof64 = (bytes: Bytes): Uint8Array<ArrayBuffer> => new Uint8Array(blake3(bytes, { dkLen: 64 }));
const b3 = (bytes: Bytes): Uint8Array<ArrayBuffer> => new Uint8Array(blake3(bytes, { dkLen: 32 }));
const words = (bytes: Uint8Array<ArrayBuffer>): Uint32Array<ArrayBuffer> => new Uint32Array(bytes.buffer);
const bytesOf = (of: Uint32Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => new Uint8Array(of.buffer);

/** fnv(a, b) = (a * 0x01000193 mod 2^32) xor b. */
export const fnv = (a: number, b: number): number => (Math.imul(a, FNV_PRIME) ^ b) >>> 0;

/** P4: the seed of an epoch's dataset. */
export function datasetSeed(networkId: number, epoch: number): Uint8Array<ArrayBuffer> {
  const input = new ByteWriter().raw(utf8('SVC_POW_V1/dataset')).u32(networkId).u64(BigInt(epoch)).done();
  return b3(input);
}

/** P5: the cache, 2^cacheLog2 items of 64 bytes one after the other. */
export function buildCache(seed: Bytes, cacheLog2: number): Uint8Array<ArrayBuffer> {
  const n = 2 ** cacheLog2;
  const cache = new Uint8Array(64 * n);
  const at = (i: number): Uint8Array<ArrayBuffer> => cache.subarray(64 * i, 64 * i + 64);
  cache.set(xof64(seed), 0);
  for (let i = 1; i < n; i++) cache.set(xof64(at(i - 1)), 64 * i);
  const firstWord = new DataView(cache.buffer);
  const mixed = new Uint8Array(64);
  for (let pass = 0; pass < POW_CACHE_PASSES; pass++)
    for (let i = 0; i < n; i++) {
      const before = at((i - 1 + n) % n);
      const other = at(firstWord.getUint32(64 * i, true) >>> (32 - cacheLog2));
      for (let j = 0; j < 64; j++) mixed[j] = (before[j] as number) ^ (other[j] as number);
      cache.set(xof64(mixed), 64 * i);
    }
  return cache;
}

/** P6: item `i` of the dataset, 64 bytes. */
export function datasetItem(cache: Bytes, cacheLog2: number, i: number): Uint8Array<ArrayBuffer> {
  const n = 2 ** cacheLog2;
  const cached = (index: number): Uint32Array<ArrayBuffer> =>
    words(new Uint8Array(cache.subarray(64 * index, 64 * index + 64)));
  let m = cached(i % n);
  m[0] = (m[0] as number) ^ i;
  m = words(xof64(bytesOf(m)));
  for (let k = 0; k < POW_ITEM_PARENTS; k++) {
    const parent = cached(fnv((i ^ k) >>> 0, m[k % 16] as number) >>> (32 - cacheLog2));
    for (let j = 0; j < 16; j++) m[j] = fnv(m[j] as number, parent[j] as number);
  }
  return xof64(bytesOf(m));
}

/** P7: page `p` of the dataset, 32 words. */
export function datasetPage(cache: Bytes, cacheLog2: number, p: number): Uint32Array<ArrayBuffer> {
  return words(concat(datasetItem(cache, cacheLog2, 2 * p), datasetItem(cache, cacheLog2, 2 * p + 1)));
}

function assertHeader(header: Bytes): void {
  if (header.length !== HEADER_BYTES) throw new RangeError(`a header has ${HEADER_BYTES} bytes, got ${header.length}`);
}

/** P8: the hash of everything but the nonce, constant while a job lasts. */
export function powPreHash(header: Bytes): Uint8Array<ArrayBuffer> {
  assertHeader(header);
  return b3(concat(utf8(POW_LABEL), header.subarray(0, NONCE_OFFSET)));
}

export function powNonce(header: Bytes): Uint8Array<ArrayBuffer> {
  assertHeader(header);
  return new Uint8Array(header.subarray(NONCE_OFFSET));
}

/** P9: the 64-byte seed of one nonce. */
export const powSeed = (preHash: Bytes, nonce: Bytes): Uint8Array<ArrayBuffer> => xof64(concat(preHash, nonce));

/** P10: 64 dependent reads of the dataset, through a function that gives its pages. */
export function powMix(
  seed: Bytes,
  pagesLog2: number,
  page: (p: number) => Uint32Array<ArrayBuffer>,
): Uint32Array<ArrayBuffer> {
  const mix = words(concat(seed, seed));
  const last = mix[15] as number;
  for (let i = 0; i < POW_ROUNDS; i++) {
    const g = fnv((i ^ last) >>> 0, mix[i % 32] as number);
    const data = page(g >>> (32 - pagesLog2));
    const r = g & 7;
    for (let j = 0; j < 32; j++) mix[j] = fnv(mix[j] as number, data[4 * ((j >>> 2) ^ r) + ((j + i) & 3)] as number);
  }
  return mix;
}

/** P11: 32 words folded to 8. */
export function powFold(mix: Uint32Array): Uint8Array<ArrayBuffer> {
  const folded = new Uint32Array(8);
  for (let k = 0; k < 8; k++) {
    const [a, b, c, d] = mix.subarray(4 * k, 4 * k + 4) as unknown as [number, number, number, number];
    folded[k] = fnv(fnv(fnv(a, b), c), d);
  }
  return bytesOf(folded);
}

/** P12: the hash itself. */
export const powFinish = (seed: Bytes, folded: Bytes): Uint8Array<ArrayBuffer> =>
  b3(concat(seed.subarray(0, 32), folded));

export type PowStages = {
  readonly preHash: Uint8Array<ArrayBuffer>;
  readonly seed: Uint8Array<ArrayBuffer>;
  /** The folded mix, as the vectors carry it. */
  readonly mix: Uint8Array<ArrayBuffer>;
  readonly pow: Uint8Array<ArrayBuffer>;
};

/** One whole hash from the cache alone, with every stage of it. */
export function powStages(parameters: PowParameters, cache: Bytes, header: Bytes): PowStages {
  const preHash = powPreHash(header);
  const seed = powSeed(preHash, powNonce(header));
  const page = (p: number): Uint32Array<ArrayBuffer> => datasetPage(cache, parameters.cacheLog2, p);
  const mix = powFold(powMix(seed, parameters.pagesLog2, page));
  return { preHash, seed, mix, pow: powFinish(seed, mix) };
}

/** A seed received from a server is only compared, never used (P4). */
export const isDatasetSeed = (networkId: number, epoch: number, seed: Bytes): boolean =>
  equalBytes(datasetSeed(networkId, epoch), seed);
