import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { bench, median, rates, renderTable, runBenchmark, showValue } from '../bench/harness.ts';

const main = new URL('../bench/run.ts', import.meta.url).pathname;
const start = (...words: string[]) => spawnSync(process.execPath, [main, ...words], { encoding: 'utf8' });

test('figures are a table for people and objects for machines', async () => {
  const benchmark = bench('x', async (b) => {
    b.figure('search', 1234567.8, 'H/s', { ratio: 0.756, yardstick: 'native C' });
    b.figure('start', 0.01234, 's');
  });
  const figures = await runBenchmark('pow-cpu', benchmark, [], () => undefined);
  expect(figures).toEqual([
    { bench: 'pow-cpu/search', value: 1234567.8, unit: 'H/s', ratio: 0.756, yardstick: 'native C' },
    { bench: 'pow-cpu/start', value: 0.01234, unit: 's' },
  ]);
  expect(renderTable(figures)).toBe(
    '  pow-cpu/search  1,234,568 H/s  0.76 of native C\n  pow-cpu/start      0.0123 s\n',
  );
  expect([0, 7, 42.123, 999.99].map(showValue)).toEqual(['0', '7', '42.1', '1,000']);
  const broken = bench('x', async (b) => b.figure('y', Number.NaN, 's'));
  await expect(runBenchmark('z', broken, [], () => undefined)).rejects.toThrow('z/y is NaN');
});

test('rates count what was run, also when it is asynchronous', async () => {
  let plain = 0;
  let waited = 0;
  const works = {
    plain: () => {
      plain++;
    },
    waited: () => {
      waited++;
      return setTimeout(1);
    },
  };
  const measured = await rates(works, { seconds: 0.02, rounds: 3 });
  expect(measured.plain).toBeGreaterThan(measured.waited);
  expect(measured.waited).toBeLessThanOrEqual(1000);
  expect(Math.min(plain, waited)).toBeGreaterThan(0);
  expect([median([3, 1, 2]), median([4, 1, 2, 3])]).toEqual([2, 2.5]);
});

test('without a name the benchmarks are listed; a wrong name is refused', () => {
  const files = readdirSync(new URL('../bench/', import.meta.url)).filter((name) => name.endsWith('.bench.ts'));
  const { status, stdout } = start();
  expect(status).toBe(0);
  for (const file of files) expect(stdout).toContain(`${file.slice(0, -'.bench.ts'.length)} `);
  expect(start('ledgr')).toMatchObject({ status: 2, stderr: "there is no benchmark 'ledgr' (did you mean ledger?)\n" });
});
