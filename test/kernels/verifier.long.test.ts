import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import type { Progress } from '../../kernels/backend.ts';
import { createVerifier, type VerifierDependencies, type VerifierOptions } from '../../kernels/verifier.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { vectorsOf } from '../protocol/pow-vectors.ts';
import type { FromThread, ToThread } from './attached-thread.ts';
import { noiseHeader, referenceHasher, TINY } from './tiny-network.ts';

/** Every worker thread that is started, so that a test can end one as a crash would. */
let started: Worker[] = [];
process.on('worker', (worker) => started.push(worker));
afterEach(() => {
  started = [];
});

function verifierOf(options: Partial<VerifierOptions> = {}, dependencies: VerifierDependencies = {}) {
  const verifier = createVerifier({ network: TINY, mode: 'full', threads: 2, ...options }, dependencies);
  onTestFinished(() => verifier.close());
  return verifier;
}

const headers = (count: number, from = 0) => Array.from({ length: count }, (_, i) => noiseHeader(from + i));

test.each(['full', 'light'] as const)('%s: the vectors of the development network', async (mode) => {
  const verifier = verifierOf({ network: NETWORKS.development, mode });
  for (const vector of vectorsOf('development')) {
    await verifier.prepare(vector.epoch);
    const hashes = await verifier.hashMany(
      vector.epoch,
      vector.hashes.map(({ header }) => fromHex(header)),
    );
    expect(hashes.map(toHex)).toEqual(vector.hashes.map(({ pow }) => pow));
  }
  expect(verifier.epochs).toEqual([0, 3]);
});

test('hashes come back in the order of the headers, one at a time and many at once', async () => {
  const verifier = verifierOf();
  await verifier.prepare(5);
  const reference = referenceHasher(TINY, 5);
  const all = headers(1_000);
  const expected = all.map((header) => toHex(reference(header)));
  const [many, single] = await Promise.all([
    verifier.hashMany(5, all),
    Promise.all(all.map((header) => verifier.hash(5, header))),
  ]);
  expect(many.map(toHex)).toEqual(expected);
  expect(single.map(toHex)).toEqual(expected);
  expect(verifier.queued).toBe(0);
  expect(await verifier.hashMany(5, [])).toEqual([]);
});

test('over its bound the queue refuses at once and whole, and takes again when there is room', async () => {
  const verifier = verifierOf({ queueLimit: 100 });
  await verifier.prepare(0);
  const first = verifier.hashMany(0, headers(90));
  expect(verifier.queued).toBe(90);
  await expect(verifier.hashMany(0, headers(11))).rejects.toMatchObject({ code: 'kernel_busy' });
  const fits = verifier.hashMany(0, headers(10));
  await Promise.all([first, fits]);
  expect(verifier.queued).toBe(0);
  expect(await verifier.hashMany(0, headers(100))).toHaveLength(100);
});

test('an epoch that was not prepared, or may not be, is refused; two are kept', async () => {
  const verifier = verifierOf({ isEpochAllowed: (epoch) => epoch < 10 });
  await expect(verifier.hash(3, noiseHeader(0))).rejects.toMatchObject({ code: 'kernel_epoch_not_ready' });
  await expect(verifier.prepare(10)).rejects.toMatchObject({ code: 'kernel_epoch_not_allowed' });
  await expect(verifier.prepare(-1)).rejects.toMatchObject({ code: 'kernel_epoch_not_allowed' });
  await Promise.all([verifier.prepare(3), verifier.prepare(3)]);
  await verifier.prepare(4);
  await verifier.prepare(5);
  expect(verifier.epochs).toEqual([4, 5]);
  await expect(verifier.hash(3, noiseHeader(0))).rejects.toMatchObject({ code: 'kernel_epoch_not_ready' });
  expect(toHex(await verifier.hash(4, noiseHeader(0)))).toBe(toHex(referenceHasher(TINY, 4)(noiseHeader(0))));
  expect(() => verifier.hash(4, new Uint8Array(311))).toThrow(/312 bytes/);
});

test('what a dead worker held is computed again by the others, and the worker is replaced', async () => {
  const log: string[] = [];
  const verifier = verifierOf({}, { log: (message) => log.push(message) });
  await verifier.prepare(0);
  const workers = started.slice(0, 2);
  const all = headers(2_000);
  const reference = referenceHasher(TINY, 0);
  const hashes = verifier.hashMany(0, all);
  await Promise.resolve();
  await workers[0]?.terminate();
  expect((await hashes).map(toHex)).toEqual(all.map((header) => toHex(reference(header))));
  await expect.poll(() => log).toEqual(['verification worker died, starting another']);
  // Both of the first are gone now: only the replacement can answer.
  await workers[1]?.terminate();
  expect(toHex(await verifier.hash(0, noiseHeader(7)))).toBe(toHex(reference(noiseHeader(7))));
});

test('a header over which two workers died is refused as a fault of the verifier', async () => {
  // Light hashes of this size take long enough that both workers die in the middle of their first batch.
  const verifier = verifierOf({ network: NETWORKS.development, mode: 'light', threads: 1 });
  await verifier.prepare(0);
  const refused = expect(verifier.hashMany(0, headers(500))).rejects.toMatchObject({ code: 'kernel_worker_failed' });
  const [first] = started;
  const replaced = once(process, 'worker') as Promise<[Worker]>;
  await first?.terminate();
  const [replacement] = await replaced;
  // Its answers to 'open' and 'attach': from then on it has the headers.
  for (let answers = 0; answers < 2; answers++) await once(replacement, 'message');
  await replacement.terminate();
  await refused;
  expect(await verifier.hashMany(0, headers(10))).toHaveLength(10);
  await expect.poll(() => verifier.queued).toBe(0);
});

test('other threads verify through handles of their own, also after a worker was replaced', async () => {
  const verifier = verifierOf();
  await verifier.prepare(1);
  const [first] = started;
  const thread = new Worker(new URL('./attached-thread.ts', import.meta.url));
  onTestFinished(async () => void (await thread.terminate()));
  const ticket = verifier.share();
  thread.postMessage({ ticket } satisfies ToThread, [...ticket.transfer] as never);
  const ask = async (message: ToThread): Promise<FromThread> => {
    thread.postMessage(message);
    const [answer] = (await once(thread, 'message')) as [FromThread];
    return answer;
  };
  const check = async (epoch: number) => {
    const all = headers(200, epoch);
    const reference = referenceHasher(TINY, epoch);
    const { hashes } = await ask({ hash: { epoch, headers: all } });
    expect(hashes?.map(toHex)).toEqual(all.map((header) => toHex(reference(header))));
  };
  await check(1);
  expect(await ask({ prepare: 2 })).toEqual({});
  await check(2);
  await first?.terminate();
  await check(2);
  expect(await ask({ prepare: -1 })).toEqual({ code: 'kernel_epoch_not_allowed' });
  await verifier.close();
  expect(await ask({ hash: { epoch: 1, headers: headers(1) } })).toEqual({ code: 'kernel_closed' });
});

test('too little memory is refused with what light mode would need', async () => {
  const verifier = verifierOf({ network: NETWORKS.mainnet }, { availableMemory: () => 100 * 2 ** 20 });
  await expect(verifier.prepare(0)).rejects.toMatchObject({
    code: 'kernel_memory_insufficient',
    message: expect.stringMatching(/full mode needs 2,113 MiB.*100 MiB are free; light mode needs 65 MiB/),
  });
});

test('closing ends a build and refuses what waits', async () => {
  const progress: Progress[] = [];
  const verifier = verifierOf({ network: NETWORKS.mainnet }, { onProgress: (now) => progress.push(now) });
  const preparing = verifier.prepare(0);
  preparing.catch(() => {});
  await expect.poll(() => progress.length).toBeGreaterThan(0);
  await verifier.close();
  await expect(preparing).rejects.toMatchObject({ code: 'kernel_closed' });
  await expect(verifier.prepare(1)).rejects.toMatchObject({ code: 'kernel_closed' });
  await expect(verifier.hash(0, noiseHeader(0))).rejects.toMatchObject({ code: 'kernel_closed' });
});
