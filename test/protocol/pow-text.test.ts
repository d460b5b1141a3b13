import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fromHex } from '../../protocol/bytes.ts';
import { datasetPage, fnv, powMix, powNonce, powParameters, powPreHash, powSeed } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { developmentCache } from '../../vectors/generate/development-cache.ts';
import { DEVELOPMENT, vectorsOf } from './pow-vectors.ts';

const text = readFileSync(new URL('../../docs/protocol/pow.md', import.meta.url), 'utf8');
const [vector] = vectorsOf('development');
const hash = vector!.hashes[0]!;

/** 32 bytes a line, as the table breaks them. */
const shown = (hex: string): string => (hex.match(/.{1,64}/g) ?? []).map((part) => `\`${part}\``).join(' ');

test('the example of pow.md is the first development vector', () => {
  expect(hash.header).toBe('0'.repeat(624));
  const [c0, , last] = vector!.cache;
  const values = {
    'seed (P4)': vector!.dataset_seed,
    'c[0] after all passes (P5)': c0!.bytes,
    [`c[${last!.index}]`]: last!.bytes,
    'item 0 (P6)': vector!.items[0]!.bytes,
    'item 1': vector!.items[1]!.bytes,
    'pre (P8)': hash.pre_hash,
    's (P9)': hash.seed,
    'f (P11)': hash.mix,
    'pow (P12)': hash.pow,
  };
  for (const [name, value] of Object.entries(values)) expect(text).toContain(`| ${name} | ${shown(value)} |`);
});

test('the rounds of the example are those of the reference', () => {
  const cache = developmentCache(0);
  const header = fromHex(hash.header);
  const seed = powSeed(powPreHash(header), powNonce(header));
  const last = new Uint32Array(seed.buffer)[15] as number;
  const pages: number[] = [];
  const page = (p: number) => {
    pages.push(p);
    return datasetPage(cache, DEVELOPMENT.cacheLog2, p);
  };
  powMix(seed, DEVELOPMENT.pagesLog2, page);
  const rows = [...text.matchAll(/^\| (\d+) \| 0x([0-9a-f]{8}) \| (\d+) \| (\d) \|/gm)].map((row) => row.slice(1));
  expect(rows.map(([i]) => i)).toEqual(['0', '1', '2', '63']);
  for (const [i, g, p, r] of rows) {
    expect(pages[Number(i)]).toBe(Number(p));
    expect(Number.parseInt(g!, 16) >>> 15).toBe(Number(p));
    expect(Number.parseInt(g!, 16) & 7).toBe(Number(r));
  }
  expect(fnv(last, new Uint32Array(seed.buffer)[0] as number)).toBe(0xb0036d23);
});

test('the sizes of pow.md are those of the networks', () => {
  for (const network of Object.values(NETWORKS)) {
    const { networkId, cacheLog2, pagesLog2 } = powParameters(network);
    expect(text).toMatch(
      new RegExp(`\\| ${network.name} \\| ${networkId} \\| ${cacheLog2} \\| [^|]+ \\| ${pagesLog2} \\|`),
    );
  }
});
