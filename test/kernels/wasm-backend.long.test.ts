import type { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import type { BackendEvents, Hit, SearchJob } from '../../kernels/backend.ts';
import { freeNonces, splitNonces } from '../../kernels/backend.ts';
import { createWasmBackend, type WasmBackendOptions } from '../../kernels/cpu/wasm-backend.ts';
import { bigintToBytesBE, toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { count } from '../level.ts';
import { noiseHeader, referenceHasher, TINY } from './tiny-network.ts';

const started: Worker[] = [];
process.on('worker', (worker) => started.push(worker));

function backendOf(options: Partial<WasmBackendOptions> = {}, events: Partial<BackendEvents> = {}) {
  const hits: Hit[] = [];
  const finished: number[] = [];
  const backend = createWasmBackend(
    { network: TINY, mode: 'full', threads: 2, ...options },
    { onHit: (hit) => hits.push(hit), onExhausted: (id) => finished.push(id), ...events },
  );
  onTestFinished(() => backend.close());
  return { backend, hits, finished };
}

/** The reference tries each of them. */
const NONCES = BigInt(count({ full: 1_000, deep: 3_000 }));
const TARGET = bigintToBytesBE((1n << 256n) / 20n, 32);

function jobOf(fields: Partial<SearchJob> = {}): SearchJob {
  const header = noiseHeader(fields.id ?? 1);
  header.set([0xab, 0xcd], 310);
  return { id: 1, epoch: 0, header, target: TARGET, prefixBytes: 2, nonces: { from: 0n, to: NONCES }, ...fields };
}

/** Every nonce of the job's range that the reference calls a hit. */
function expectedHits(job: SearchJob): string[] {
  const reference = referenceHasher(TINY, job.epoch);
  const header = new Uint8Array(job.header);
  const found: string[] = [];
  for (let free = job.nonces.from; free < job.nonces.to; free++) {
    header.set(bigintToBytesBE(free, 8 - job.prefixBytes).reverse(), 304);
    const hash = toHex(reference(header));
    if (hash <= toHex(job.target)) found.push(`${toHex(header.slice(304))} ${hash}`);
  }
  return found.sort();
}

const shown = (hits: readonly Hit[]): string[] =>
  hits.map(({ nonce, hash }) => `${toHex(nonce)} ${toHex(hash)}`).sort();

test.each([
  ['two threads', {}],
  ['light', { mode: 'light' }],
  ['a memory of its own', { shareMemory: false }],
  ['light in a memory of its own', { mode: 'light', shareMemory: false }],
] satisfies [string, Partial<WasmBackendOptions>][])('%s: a range is searched whole and once', async (_, options) => {
  const { backend, hits, finished } = backendOf(options);
  await backend.prepare(0);
  const job = jobOf({ nonces: { from: 0xffff_fff0_0000n, to: 0xffff_fff0_0000n + NONCES } });
  backend.setJob(job);
  await expect.poll(() => finished).toEqual([1]);
  expect(shown(hits)).toEqual(expectedHits(job));
  expect(hits.length).toBeGreaterThan(20);
  expect(backend.hashes).toBe(Number(NONCES));
  expect(backend.threadHashes?.reduce((sum, hashes) => sum + hashes, 0)).toBe(Number(NONCES));
});

test('the easiest target loses no hit', async () => {
  const { backend, hits, finished } = backendOf();
  await backend.prepare(0);
  const job = jobOf({ target: new Uint8Array(32).fill(255), prefixBytes: 1, nonces: { from: 0n, to: 5_000n } });
  backend.setJob(job);
  await expect.poll(() => finished).toEqual([1]);
  expect(new Set(shown(hits)).size).toBe(5_000);
});

test('a target of zero gives no hits', async () => {
  const { backend, hits, finished } = backendOf();
  await backend.prepare(0);
  backend.setJob(jobOf({ target: new Uint8Array(32) }));
  await expect.poll(() => finished).toEqual([1]);
  expect(hits).toEqual([]);
});

test('a new job takes over, a pause stops the count, and hits keep the id of their job', async () => {
  const { backend, hits } = backendOf();
  await backend.prepare(0);
  const endless = { from: 0n, to: freeNonces(2) };
  backend.setJob(jobOf({ id: 7, nonces: endless }));
  await expect.poll(() => hits.length).toBeGreaterThan(10);
  expect(new Set(hits.map(({ jobId }) => jobId))).toEqual(new Set([7]));
  backend.setJob(jobOf({ id: 8, nonces: endless }));
  await expect.poll(() => hits.at(-1)?.jobId).toBe(8);
  backend.pause();
  await expect
    .poll(async () => {
      const before = backend.hashes;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return backend.hashes - before;
    })
    .toBe(0);
  const paused = backend.hashes;
  backend.resume();
  await expect.poll(() => backend.hashes).toBeGreaterThan(paused);
  backend.setJob(undefined);
});

test('the next epoch is built while the search goes on, and two are kept', async () => {
  const { backend, hits, finished } = backendOf();
  await backend.prepare(0);
  backend.setJob(jobOf({ id: 1, nonces: { from: 0n, to: freeNonces(2) } }));
  await backend.prepare(1);
  const before = backend.hashes;
  await expect.poll(() => backend.hashes).toBeGreaterThan(before);
  hits.length = 0;
  const next = jobOf({ id: 2, epoch: 1 });
  backend.setJob(next);
  await expect.poll(() => finished).toEqual([2]);
  expect(shown(hits.filter(({ jobId }) => jobId === 2))).toEqual(expectedHits(next));
  await backend.prepare(2);
  expect(backend.epochs).toEqual([1, 2]);
  expect(() => backend.setJob(jobOf({ epoch: 0 }))).toThrow(
    expect.objectContaining({ code: 'kernel_epoch_not_ready' }),
  );
});

test('a search thread that dies is a failure of the backend, told once', async () => {
  const failures: Error[] = [];
  const first = started.length;
  const { backend } = backendOf({}, { onFailure: (error) => failures.push(error) });
  await backend.prepare(0);
  backend.setJob(jobOf({ nonces: { from: 0n, to: freeNonces(2) } }));
  await started[first]?.terminate();
  await expect.poll(() => failures).toMatchObject([{ code: 'kernel_worker_failed' }]);
  expect(() => backend.setJob(jobOf())).toThrow(expect.objectContaining({ code: 'kernel_closed' }));
});

test('a range outside the free nonces is refused, and parts of a range cover it once', () => {
  const { backend } = backendOf({ threads: 1 });
  expect(() => backend.setJob(jobOf())).toThrow(expect.objectContaining({ code: 'kernel_epoch_not_ready' }));
  expect(splitNonces({ from: 5n, to: 15n }, 3)).toEqual([
    { from: 5n, to: 8n },
    { from: 8n, to: 11n },
    { from: 11n, to: 15n },
  ]);
});

test('too little memory is refused before anything is built', async () => {
  const backend = createWasmBackend(
    { network: NETWORKS.mainnet, mode: 'full', threads: 1 },
    { onHit: () => {}, availableMemory: () => 1 << 30 },
  );
  onTestFinished(() => backend.close());
  await expect(backend.prepare(0)).rejects.toMatchObject({ code: 'kernel_memory_insufficient' });
});
