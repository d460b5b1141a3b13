/** What `--benchmark` measures: the search alone. */
import { expect, test } from 'vitest';
import type { Backend } from '../../kernels/backend.ts';
import { benchmark } from '../../miner/devices/benchmark.ts';

test('nothing is measured while the dataset is still being written', async () => {
  const did: string[] = [];
  const written = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const backend = {
    name: 'CPU',
    kind: 'wasm',
    hashes: 0,
    epochs: [0],
    prepare: async () => void did.push('prepared'),
    stored: () => {
      asked.resolve();
      return written.promise.then(() => void did.push('stored'));
    },
    setJob: () => void did.push('searching'),
    pause: () => undefined,
    resume: () => undefined,
    close: async () => undefined,
  } satisfies Backend;
  const device = { number: 0, name: 'CPU', open: async () => backend };
  const options = { network: 'development', seconds: 0.01, jobMillis: undefined };
  const figures = benchmark(options, [device], () => undefined);
  await asked.promise;
  written.resolve();
  expect((await figures).devices).toHaveLength(1);
  expect(did).toEqual(['prepared', 'stored', 'searching']);
});
