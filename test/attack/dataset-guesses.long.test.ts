/**
 * Epochs that a lying pool names: the file of the epoch that is really mined is never deleted for a guess, few files are
 * kept, and a build that nobody wants any more is given up. Real WebAssembly backends with a small dataset, real files.
 */
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import type { Backend, SearchJob } from '../../kernels/backend.ts';
import { layoutOf } from '../../kernels/cpu/layout.ts';
import { createWasmBackend } from '../../kernels/cpu/wasm-backend.ts';
import { DatasetFiles } from '../../kernels/dataset-file.ts';
import { DatasetUse, epochsToKeep, MOST_FILES } from '../../kernels/dataset-use.ts';
import { powParameters } from '../../protocol/crypto/pow.ts';
import { TINY } from '../kernels/tiny-network.ts';
import { count, seed } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';

const DAY = 86_400_000;

function open(directory: string, hits: { jobId: number }[] = []): { backend: Backend; files: DatasetFiles } {
  const files = new DatasetFiles({ directory }, { log: () => undefined });
  const backend = createWasmBackend(
    { network: TINY, mode: 'full', threads: 1, builders: 1 },
    { onHit: (hit) => hits.push(hit), store: files },
  );
  onTestFinished(async () => {
    await backend.close();
    await files.close();
  });
  return { backend, files };
}

const job = (id: number, epoch: number): SearchJob => ({
  id,
  epoch,
  header: new Uint8Array(312),
  target: new Uint8Array(32),
  prefixBytes: 2,
  nonces: { from: 0n, to: 1n << 48n },
});

const epochsOn = (directory: string): number[] =>
  readdirSync(directory)
    .flatMap((name) => /-(\d+)\.bin$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);

test('guesses come and go; the file that was worked with stays', async () => {
  const directory = temporaryDirectory();
  const { backend, files } = open(directory);
  await backend.prepare(7);
  backend.setJob(job(1, 7));
  await expect.poll(() => backend.hashes).toBeGreaterThan(1_000);
  // And a day before that: more than the guesses get, however busy this machine is.
  files.worked(7, layoutOf(powParameters(TINY), 'full', 1), 1e12);
  for (const guess of [500, 501, 900, 3, 12_345]) {
    await backend.prepare(guess);
    await expect.poll(() => epochsOn(directory)).toContain(guess);
    backend.setJob(job(guess, guess));
    await expect.poll(() => readdirSync(directory).filter((name) => name.endsWith('.partial'))).toEqual([]);
    // A thread puts the new file there, and this one removes others when it hears of that.
    await expect.poll(() => epochsOn(directory).length).toBeLessThanOrEqual(MOST_FILES);
    expect(epochsOn(directory)).toContain(7);
  }
});

test('what is worked with is kept; what is over is let go', () => {
  const directory = temporaryDirectory();
  let now = 0;
  const use = new DatasetUse(directory, () => now);
  const keep = (epochs: readonly number[], saved: number) =>
    epochsToKeep(
      epochs.map((epoch) => ({ epoch, work: use.of(String(epoch)) })),
      saved,
    ).sort((a, b) => a - b);
  for (let epoch = 5; epoch < 12; epoch++) {
    const held = [epoch - 2, epoch - 1, epoch].filter((e) => e >= 5);
    expect(keep(held, epoch)).toEqual([epoch - 1, epoch].filter((e) => e >= 5));
    for (let day = 0; day < 30; day++) {
      now += DAY;
      use.add(String(epoch), 1e9);
    }
  }
  expect(keep([11, 700], 701)).toEqual([11, 700, 701]);
  expect(keep([11, 700, 701], 30)).toEqual([11, 30]);
  use.write();
  expect(new DatasetUse(directory, () => now).of('11')).toBe(use.of('11'));
  // Nodes and pools, which verify, count no use: they keep the neighbours.
  expect(
    epochsToKeep(
      [1, 2, 3, 4].map((epoch) => ({ epoch, work: 0 })),
      4,
    ),
  ).toEqual([4, 3]);
});

test('whatever is saved: few files, the new one among them, and the most used one of the others', () => {
  const file = fc.record({ epoch: fc.nat({ max: 20 }), work: fc.oneof(fc.constant(0), fc.nat({ max: 1_000 })) });
  fc.assert(
    fc.property(
      fc.uniqueArray(file, { selector: ({ epoch }) => epoch, maxLength: 8 }),
      fc.nat({ max: 20 }),
      (files, saved) => {
        const kept = epochsToKeep(files, saved);
        expect(kept.length).toBeLessThanOrEqual(MOST_FILES);
        expect(kept).toContain(saved);
        const others = files.filter(({ epoch, work }) => epoch !== saved && work > 0);
        const most = Math.max(...others.map(({ work }) => work));
        if (others.length > 0)
          expect(others.some(({ epoch, work }) => work === most && kept.includes(epoch))).toBe(true);
      },
    ),
    { seed, numRuns: count({ quick: 200, full: 1_000, deep: 20_000 }) },
  );
});

test('a build that nobody wants any more is given up, the search goes on, and the epoch at hand is never dropped', async () => {
  const { backend } = open(temporaryDirectory());
  await backend.prepare(1);
  backend.setJob(job(1, 1));
  const guesses = [50, 51, 52, 53].map((epoch) =>
    backend.prepare(epoch).then(
      () => 'built',
      (error: { code: string }) => error.code,
    ),
  );
  const outcomes = await Promise.all(guesses);
  expect(outcomes.at(-1)).toBe('built');
  expect(outcomes.slice(1, -1).every((outcome) => outcome === 'kernel_superseded')).toBe(true);
  expect(['kernel_closed', 'kernel_superseded']).toContain(outcomes[0]);
  expect(backend.epochs).toEqual([1, 53]);
  await backend.prepare(2);
  expect(backend.epochs).toEqual([1, 2]);
  const before = backend.hashes;
  await expect.poll(() => backend.hashes).toBeGreaterThan(before);
});
