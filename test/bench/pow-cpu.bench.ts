/**
 * The CPU kernel against the same hash in C, one core each, on a dataset of mainnet's size; and what users wait for:
 * the start on the development network and the load of a dataset file.
 *
 *   npm run bench -- pow-cpu          everything
 *   npm run bench -- pow-cpu search   only the comparison with C
 *
 * Rates are per second of processor time, of C and of WebAssembly in turns: other load on the machine then hurts both
 * little and alike. The dataset holds noise, not mainnet's: a search reads the same bytes at the same distances.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMemory, Kernel } from '../../kernels/cpu/kernel.ts';
import { layoutOf } from '../../kernels/cpu/layout.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import { createVerifier, type Verifier } from '../../kernels/verifier.ts';
import { concat, fromHex, toHex } from '../../protocol/bytes.ts';
import { datasetSeed, type PowParameters, powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { vectorsOf } from '../protocol/pow-vectors.ts';
import { type Bench, bench, median } from './harness.ts';
import { startYardstick, type Yardstick } from './pow-cpu-yardstick.ts';

const ROUNDS = 7;
const NONCES = 65_536;
const ITEMS = 131_072;
const SINGLES = 16_384;

function cpuSeconds(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const used = process.threadCpuUsage(before);
  return (used.user + used.system) / 1e6;
}

async function kernelOf(parameters: PowParameters, mode: 'full' | 'light'): Promise<Kernel> {
  const layout = layoutOf(parameters, mode, 1);
  return new Kernel(await kernelModule(true), createMemory(layout, true), layout, 0);
}

function fillWithNoise(kernel: Kernel): void {
  const words = new Uint32Array(kernel.memory.buffer, kernel.layout.dataset, kernel.layout.datasetBytes / 4);
  let x = 1;
  for (let i = 0; i < words.length; i++) {
    x = (Math.imul(x, 1_664_525) + 1_013_904_223) | 0;
    words[i] = x ^ (x >>> 15);
  }
}

function noiseHeaders(count: number, from: number): Uint8Array<ArrayBuffer> {
  const headers = new Uint8Array(312 * count);
  const view = new DataView(headers.buffer);
  for (let i = 0; i < count; i++) view.setUint32(312 * i + 304, from + i, true);
  return headers;
}

/** That C computes the same hash: a yardstick of something else would measure nothing. */
async function assertSameHash(): Promise<void> {
  const [vector] = vectorsOf('development');
  const yardstick = await startYardstick(powParameters(NETWORKS.development), fromHex(vector!.dataset_seed));
  for (const { header, pow } of vector!.hashes)
    if ((await yardstick.ask(`check ${header}`)) !== pow) throw new Error('the yardstick computes another hash');
  yardstick.close();
}

async function compareWithC(b: Bench): Promise<void> {
  await assertSameHash();
  const parameters = powParameters(NETWORKS.mainnet);
  const seed = datasetSeed(parameters.networkId, 0);
  b.note('building caches and filling two datasets of 2 GiB');
  const yardstick = await startYardstick(parameters, seed);
  const kernel = await kernelOf(parameters, 'full');
  const cacheSeconds = cpuSeconds(() => kernel.buildCache(seed, 0, kernel.cacheSteps));
  b.figure('cache', cacheSeconds, 's', { ratio: yardstick.cacheSeconds / cacheSeconds, yardstick: 'C' });
  await yardstick.ask('fill');
  fillWithNoise(kernel);
  await measureRates(b, kernel, yardstick);
  yardstick.close();
  await measureLight(b, kernel, parameters);
}

async function measureRates(b: Bench, kernel: Kernel, yardstick: Yardstick): Promise<void> {
  const zero = new Uint8Array(32);
  const measured = new Map<string, number[]>();
  for (let i = 0; i <= ROUNDS; i++) {
    // Other nonces every time: a page that was read before may still be in a cache.
    const from = BigInt(i * NONCES);
    const headers = noiseHeaders(SINGLES, 1_000_000 + i * SINGLES);
    const round = {
      search: NONCES / cpuSeconds(() => kernel.search(zero, zero, from, NONCES)),
      c8: NONCES / (await yardstick.seconds(`search ${NONCES} 8`)),
      c16: NONCES / (await yardstick.seconds(`search ${NONCES} 16`)),
      c32: NONCES / (await yardstick.seconds(`search ${NONCES} 32`)),
      build: ITEMS / cpuSeconds(() => kernel.buildItems(0, ITEMS)),
      cBuild: ITEMS / (await yardstick.seconds(`build ${ITEMS}`)),
      single:
        SINGLES /
        cpuSeconds(() => {
          for (let h = 0; h < SINGLES; h++) kernel.hash(headers.subarray(312 * h, 312 * h + 312));
        }),
      cSingle: SINGLES / (await yardstick.seconds(`single ${SINGLES}`)),
      batch: SINGLES / cpuSeconds(() => kernel.hash(headers)),
    };
    if (i > 0)
      for (const [name, value] of Object.entries(round)) measured.set(name, [...(measured.get(name) ?? []), value]);
  }
  const mid = (name: string): number => median(measured.get(name) ?? []);
  const width = [8, 16, 32].reduce((best, one) => (mid(`c${one}`) > mid(`c${best}`) ? one : best));
  const cSearch = mid(`c${width}`);
  b.figure('search', mid('search'), 'H/s per core', { ratio: mid('search') / cSearch, yardstick: `C, ${width} wide` });
  b.figure('search-c', cSearch, 'H/s per core');
  b.figure('build', mid('build'), 'items/s per core', { ratio: mid('build') / mid('cBuild'), yardstick: 'C' });
  b.figure('build-mainnet', kernel.layout.items / mid('build'), 's on one core');
  b.figure('verify-one', mid('single'), 'H/s per core', { ratio: mid('single') / mid('cSingle'), yardstick: 'C' });
  b.figure('verify-batch', mid('batch'), 'H/s per core', {
    ratio: mid('batch') / mid('single'),
    yardstick: 'one at a time',
  });
}

async function measureLight(b: Bench, full: Kernel, parameters: PowParameters): Promise<void> {
  const light = await kernelOf(parameters, 'light');
  const bytes = (kernel: Kernel) =>
    new Uint8Array(kernel.memory.buffer, kernel.layout.cache, 64 * kernel.layout.cacheItems);
  bytes(light).set(bytes(full));
  const [vector] = vectorsOf('mainnet');
  for (const { header, pow } of vector!.hashes)
    if (toHex(light.hash(fromHex(header))) !== pow) throw new Error('the light hash is wrong');
  const headers = noiseHeaders(256, 0);
  const one = cpuSeconds(() => {
    for (let h = 0; h < 64; h++) light.hash(headers.subarray(312 * h, 312 * h + 312));
  });
  const many = cpuSeconds(() => light.hash(headers));
  b.figure('light-one', (one / 64) * 1e3, 'ms');
  b.figure('light-batch', (many / 256) * 1e3, 'ms');
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

async function measureVerifier(b: Bench): Promise<void> {
  const starts: number[] = [];
  let verifier: Verifier | undefined;
  for (let i = 0; i < 5; i++) {
    await verifier?.close();
    starts.push(
      await timed(async () => {
        verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 2 });
        await verifier.prepare(0);
      }),
    );
  }
  b.figure('start-development', median(starts), 's');
  const all = noiseHeaders(8_192, 0);
  const headers = Array.from({ length: 8_192 }, (_, i) => all.subarray(312 * i, 312 * i + 312));
  const rates: number[] = [];
  for (let i = 0; i < 6; i++) rates.push(headers.length / (await timed(() => verifier!.hashMany(0, headers))));
  b.figure('verifier-many', median(rates.slice(1)), 'H/s, 2 threads, development');
  const singles = headers.slice(0, 4_096);
  const one = await timed(() => Promise.all(singles.map((header) => verifier!.hash(0, header))));
  b.figure('verifier-single-calls', singles.length / one, 'H/s, 2 threads, development');
  await verifier?.close();
}

async function measureFile(b: Bench): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const options = { network: NETWORKS.mainnet, mode: 'full', dataDir } as const;
  let stored = false;
  b.note('building the dataset of mainnet on all cores');
  const first = createVerifier(options, {
    onProgress: ({ stage, done, total }) => {
      stored ||= stage === 'store' && done === total;
    },
  });
  b.figure('build-all-cores', await timed(() => first.prepare(0)), 's');
  while (!stored) await new Promise((resolve) => setTimeout(resolve, 100));
  await new Promise((resolve) => setTimeout(resolve, 3_000)); // synced and renamed
  await first.close();
  const second = createVerifier(options, {});
  b.figure('load-file', await timed(() => second.prepare(0)), 's');
  const [vector] = vectorsOf('mainnet');
  const [hash] = await second.hashMany(0, [concat(fromHex(vector!.hashes[0]!.header))]);
  if (toHex(hash!) !== vector!.hashes[0]!.pow) throw new Error('the loaded dataset is wrong');
  await second.close();
  rmSync(dataDir, { recursive: true });
}

export default bench('the CPU kernel: search, build, verify, light, start-up, dataset file', async (b) => {
  const parts = { search: compareWithC, verifier: measureVerifier, file: measureFile };
  for (const [name, part] of Object.entries(parts)) if (b.words.length === 0 || b.words.includes(name)) await part(b);
});
