/** The backend on a real (or software) adapter: hits, jobs, exhaustion, epochs, and everything that can go wrong with a device. */
import { expect, onTestFinished, test } from 'vitest';
import type { Hit, SearchJob } from '../../kernels/backend.ts';
import { GpuBackend, type GpuBackendOptions } from '../../kernels/gpu/backend.ts';
import { buildDataset } from '../../kernels/gpu/dataset.ts';
import { type Gpu, openGpu } from '../../kernels/gpu/device.ts';
import { evenLayout } from '../../kernels/gpu/layout.ts';
import type { Trial, Tuning } from '../../kernels/gpu/tune.ts';
import { compareBytes } from '../../protocol/bytes.ts';
import { buildCache, datasetSeed, powParameters } from '../../protocol/crypto/pow.ts';
import { TARGET_OFFSET } from '../../protocol/ledger/header-layout.ts';
import { count } from '../level.ts';
import { lasts } from '../watch/limits.ts';
import { EPOCH, openTestGpu, smallShape } from './gpu-adapter.ts';
import { referenceHasher, TINY } from './tiny-network.ts';

/** A dataset of 64 KiB: what is tested here is everything around the kernels. */
const PARAMETERS = powParameters(TINY);
const cache = buildCache(datasetSeed(PARAMETERS.networkId, EPOCH), PARAMETERS.cacheLog2);
const referenceHash = referenceHasher(TINY, EPOCH);
/** More than one dispatch of an easy target may try. */
const NONCES = count({ full: 300, deep: 1500 });

const ANY = new Uint8Array(32).fill(255);
const HARD = new Uint8Array([0, 0, 0, 0, 255, ...new Uint8Array(27)]);
const EIGHTH = new Uint8Array([0x1f, ...new Uint8Array(31).fill(255)]);
const PREFIX = [0xab, 0xcd];

function job(id: number, target: Uint8Array<ArrayBuffer>, from = 0n, to = 1n << 48n): SearchJob {
  const header = new Uint8Array(312).fill(id);
  header.set(PREFIX, 310);
  // Blocks are hard: dispatches have their full length.
  header.fill(0, TARGET_OFFSET, TARGET_OFFSET + 32);
  return { id, epoch: EPOCH, header, target, prefixBytes: PREFIX.length, nonces: { from, to } };
}

async function backend(gpu: Gpu, options: Partial<GpuBackendOptions> = {}, mayBuild = async (): Promise<void> => {}) {
  const hits: Hit[] = [];
  const exhausted: number[] = [];
  const failures: Error[] = [];
  const waiting: { done: () => boolean; resolve: () => void }[] = [];
  const look = (): void => {
    for (const { done, resolve } of waiting) if (done()) resolve();
  };
  const record = <T>(list: T[], value: T): void => {
    list.push(value);
    look();
  };
  const made = new GpuBackend(
    { parameters: PARAMETERS, tuning: { shape: smallShape(gpu, 'stream') }, ...options },
    {
      gpu,
      buildCache: async (seed) => {
        await mayBuild();
        return buildCache(seed, PARAMETERS.cacheLog2);
      },
      events: {
        onHit: (hit) => record(hits, hit),
        onExhausted: (id) => record(exhausted, id),
        onFailure: (error) => record(failures, error),
      },
    },
  );
  onTestFinished(() => made.close());
  const until = (done: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      if (done()) resolve();
      else waiting.push({ done, resolve });
    });
  return { made, hits, exhausted, failures, until };
}

const LONG = lasts(120, 'a GPU that the processor stands in for is slow');

test('searches exactly its range, keeps the prefix and says when it is through', LONG, async () => {
  let gate: Promise<void> | undefined;
  const { made, hits, exhausted, until } = await backend(await openTestGpu(), {}, async () => gate);
  await made.prepare(EPOCH);
  expect(made.epochs).toEqual([EPOCH]);
  // Everything is a hit: more than the slots hold if dispatches were not cut short.
  made.setJob(job(1, ANY, 1000n, 1000n + BigInt(NONCES)));
  await until(() => exhausted.length === 1);
  const nonces = hits.map(({ nonce }) => new DataView(nonce.buffer).getBigUint64(0, true));
  expect(nonces.every((nonce) => nonce >> 48n === 0xcdabn)).toBe(true);
  expect(nonces.map((nonce) => Number(nonce & 0xffffffffffffn)).sort((a, b) => a - b)).toEqual(
    Array.from({ length: NONCES }, (_, n) => 1000 + n),
  );
  expect(made.hashes).toBe(NONCES);

  hits.length = 0;
  const second = job(2, EIGHTH, 0n, 64n);
  made.setJob(second);
  await until(() => exhausted.length === 2);
  for (const { nonce, hash, jobId } of hits) {
    const tried = new Uint8Array(second.header);
    tried.set(nonce, 304);
    expect(referenceHash(tried)).toEqual(hash);
    expect(compareBytes(hash, EIGHTH)).toBeLessThanOrEqual(0);
    expect(jobId).toBe(2);
  }

  // A new job takes over, a pause stops the count, a second epoch is built meanwhile.
  made.setJob(job(3, HARD));
  const before = made.hashes;
  let open = (): void => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  const building = made.prepare(EPOCH + 1);
  await expect.poll(() => made.hashes).toBeGreaterThan(before);
  open();
  await building;
  expect(made.epochs).toEqual([EPOCH, EPOCH + 1]);
  made.setJob({ ...job(4, EIGHTH, 0n, 640n), epoch: EPOCH + 1 });
  await until(() => exhausted.includes(4));
  made.pause();
  made.setJob(job(5, EIGHTH, 0n, 64n));
  const paused = made.hashes;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(made.hashes).toBe(paused);
  made.resume();
  await until(() => exhausted.includes(5));
  expect(() => made.setJob({ ...job(6, ANY), epoch: 77 })).toThrow(
    expect.objectContaining({ code: 'kernel_epoch_not_ready' }),
  );
  await made.close();
  expect(() => made.setJob(job(7, ANY))).toThrow(expect.objectContaining({ code: 'kernel_closed' }));
});

test('a device lost in the middle of a search is reported once', LONG, async () => {
  const gpu = await openTestGpu();
  const { made, failures, until } = await backend(gpu);
  await made.prepare(EPOCH);
  made.setJob(job(1, HARD));
  await new Promise((resolve) => setTimeout(resolve, 50));
  gpu.device.destroy();
  await until(() => failures.length > 0);
  expect(failures).toEqual([expect.objectContaining({ code: 'gpu_device_lost' })]);
  expect(() => made.setJob(job(2, ANY))).toThrow(expect.objectContaining({ code: 'kernel_closed' }));
});

test('a dispatch that does not return is reported', LONG, async () => {
  let patience = 60_000;
  const gpu = {
    ...(await openTestGpu()),
    get patience() {
      return patience;
    },
  };
  const { made, failures, until } = await backend(gpu);
  await made.prepare(EPOCH);
  patience = 0;
  made.setJob(job(1, HARD));
  await until(() => failures.length > 0);
  expect(failures).toEqual([expect.objectContaining({ code: 'gpu_hung' })]);
});

test('a machine without a driver is reported', async () => {
  const entry = { requestAdapter: async () => null } as unknown as GPU;
  await expect(openGpu({}, { entry, sources: {} })).rejects.toMatchObject({ code: 'gpu_no_adapter' });
});

test('a device that computes wrong items is not used', LONG, async () => {
  const gpu = await openTestGpu();
  onTestFinished(() => gpu.device.destroy());
  const dataset = (gpu.sources.dataset as string).replace('k < 64u', 'k < 48u');
  const wrong = { ...gpu, sources: { ...gpu.sources, dataset } };
  await expect(buildDataset(wrong, PARAMETERS, evenLayout(PARAMETERS.pagesLog2, 1), cache)).rejects.toMatchObject({
    code: 'gpu_wrong_dataset',
  });
  const broken = { ...gpu, sources: { ...gpu.sources, dataset: 'fn build( {' } };
  await expect(buildDataset(broken, PARAMETERS, evenLayout(PARAMETERS.pagesLog2, 1), cache)).rejects.toMatchObject({
    code: 'gpu_compile',
  });
});

test(
  'a device that nobody tuned searches at once, tries its candidates on real work and keeps the best',
  LONG,
  async () => {
    const gpu = await openTestGpu({ timed: true });
    const small = smallShape(gpu, 'stream');
    const candidates = [small, { ...small, workgroup: 64 }];
    const trials: Trial[] = [];
    const tuned: Tuning[] = [];
    const made = new GpuBackend(
      {
        parameters: PARAMETERS,
        candidates,
        turnTimes: { warmUpMillis: 1, heatMillis: 1, turns: 1, settleMillis: 0, turnMillis: 1 },
      },
      {
        gpu,
        buildCache: async (seed) => buildCache(seed, PARAMETERS.cacheLog2),
        events: { onHit: () => undefined },
        onTrial: (trial) => trials.push(trial),
        onTuned: (tuning) => tuned.push(tuning),
      },
    );
    onTestFinished(() => made.close());
    await made.prepare(EPOCH);
    expect(made.isTuning).toBe(true);
    made.setJob(job(1, HARD));
    await expect.poll(() => made.hashes).toBeGreaterThan(0);
    await expect.poll(() => tuned.length).toBe(1);
    expect(candidates).toContainEqual(JSON.parse(JSON.stringify(tuned[0])).shape);
    expect(made.tuning).toEqual(tuned[0]);
    expect(made.isTuning).toBe(false);
    expect(trials.map(({ shape }) => shape)).toEqual(candidates);
    expect(trials.every(({ hashesPerSecond }) => hashesPerSecond > 0)).toBe(true);
    // It goes on with the best one, and its passes are timed where the adapter can.
    const before = made.hashes;
    await expect.poll(() => made.hashes).toBeGreaterThan(before);
    if (gpu.timed) expect(made.usage?.busyMillis).toBeGreaterThan(0);
    else expect(made.usage).toBeUndefined();
  },
);
