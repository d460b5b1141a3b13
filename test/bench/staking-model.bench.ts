/**
 * The ledger against the model of staking (test/staking/model.ts) for many seeds, one thread per core: what one long test cannot do on a machine with many cores.
 * Needs neither a build nor a database. Words: `seeds=N`, `epochs=N` of each seed, `from=N` the first seed, `threads=N`. Fails when a seed differs, after all have run.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { MOST_VALIDATORS, type ModelSettings } from '../staking/model-run.ts';
import type { ModelAnswer, ModelFailure } from '../staking/model-worker.ts';
import { bench } from './harness.ts';

/** Every thread takes the next one when it is done. */
async function runAll(all: readonly ModelSettings[], threads: number, took: (answer: ModelAnswer) => void) {
  let next = 0;
  const thread = () =>
    new Promise<void>((resolve, reject) => {
      const worker = new Worker(new URL('../staking/model-worker.ts', import.meta.url));
      const give = (): void => {
        const settings = all[next++];
        if (settings !== undefined) worker.postMessage(settings);
        else void worker.terminate().then(() => resolve());
      };
      worker.on('error', reject);
      worker.on('message', (answer: ModelAnswer) => {
        took(answer);
        give();
      });
      give();
    });
  await Promise.all(Array.from({ length: threads }, thread));
}

export default bench('the ledger against the model of staking, many seeds on all cores', async (b) => {
  const number = (name: string, fallback: number) =>
    Number(b.words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? fallback);
  const [seeds, from, epochs] = [number('seeds', 16), number('from', 1), number('epochs', 100)];
  const all = Array.from({ length: seeds }, (_, i) => ({
    seed: from + i,
    epochs,
    validators: 1 + ((from + i) % MOST_VALIDATORS),
  }));
  const outcomes = new Map<string, number>();
  const failures: ModelFailure[] = [];
  let [cuts, payments, operations] = [0, 0, 0];
  const start = performance.now();
  await runAll(all, Math.min(seeds, number('threads', availableParallelism())), (answer) => {
    if ('difference' in answer) {
      failures.push(answer);
      b.note(`seed ${answer.settings.seed}, ${answer.settings.validators} validators: ${answer.difference}`);
      return;
    }
    cuts += answer.figures.cuts;
    payments += answer.figures.payments;
    for (const [name, count] of answer.figures.outcomes) {
      operations += count;
      outcomes.set(name, (outcomes.get(name) ?? 0) + count);
    }
  });
  const seconds = (performance.now() - start) / 1000;
  for (const [name, count] of [...outcomes].sort(([a], [b]) => (a < b ? -1 : 1))) b.note(`${name}: ${count}`);
  b.figure('seeds', seeds, '');
  b.figure('failed', failures.length, '');
  b.figure('cuts', cuts, '');
  b.figure('operations', operations, '');
  b.figure('payments', payments, '');
  b.figure('cuts-per-second', cuts / seconds, 'cuts/s');
  if (failures.length > 0)
    throw new Error(`${failures.length} of ${seeds} seeds differ: ${failures.map(({ settings }) => settings.seed)}`);
});
