/** What a miner tells a server of its speed at login, and what it remembers for the next start. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ListedDevice } from '../../miner/devices/device-list.ts';
import { ExpectedRate } from '../../miner/devices/expected-rate.ts';
import { RateFile, rateKey } from '../../miner/devices/rate-file.ts';
import type { Rates } from '../../miner/work/hash-rate.ts';
import { temporaryDirectory } from '../temporary.ts';

const processor: ListedDevice = { number: 0, kind: 'wasm', name: 'CPU', threads: 4 };
const card: ListedDevice = { number: 1, kind: 'webgpu', name: 'card', adapter: 'card', software: false, count: 1 };
const rates = (medium: number | undefined): Rates => ({ short: medium, medium, long: medium });

function bed(directory: string, throttle = 1, devices: readonly ListedDevice[] = [processor, card]) {
  const measured = new Map<number, number>();
  const clock = { now: 0 };
  const faults: unknown[] = [];
  const file = new RateFile(directory, 'development');
  const expected = new ExpectedRate(
    { file, devices, light: false, throttle },
    {
      now: () => clock.now,
      running: () => devices.map(({ number }) => ({ number, rates: () => rates(measured.get(number)) })),
      onUnsaved: (error) => faults.push(error),
    },
  );
  return { measured, clock, file, expected, faults };
}

test('nothing is said before every device is known; then the sum, also after a restart and with a throttle', async () => {
  const directory = temporaryDirectory();
  const first = bed(directory);
  expect(first.expected.rate()).toBeUndefined();
  first.measured.set(0, 1_000);
  expect(first.expected.rate()).toBeUndefined();
  first.measured.set(1, 500_000);
  expect(first.expected.rate()).toBe(501_000);
  first.clock.now = 59_000;
  first.expected.tick();
  expect(first.file.of(rateKey(card, false))).toBeUndefined();
  first.clock.now = 60_000;
  first.expected.tick();
  await expect.poll(() => bed(directory).expected.rate()).toBe(501_000);
  expect(bed(directory, 0.5).expected.rate()).toBe(250_500);
  expect(first.faults).toEqual([]);
});

test('a throttled device is not remembered, other threads and light mode are other devices', async () => {
  const directory = temporaryDirectory();
  const throttled = bed(directory, 0.3);
  throttled.measured.set(0, 300).set(1, 9_000);
  throttled.clock.now = 600_000;
  throttled.expected.tick();
  await new RateFile(directory, 'development').remember(rateKey(processor, false), 1_000);
  const again = new RateFile(directory, 'development');
  expect(again.of(rateKey(processor, false))).toBe(1_000);
  expect(again.of(rateKey(processor, true))).toBeUndefined();
  expect(again.of(rateKey({ ...processor, threads: 2 }, false))).toBeUndefined();
  expect(again.of(rateKey(card, false))).toBeUndefined();
});

test('a damaged file is as none, and what is no rate is never kept', async () => {
  const directory = temporaryDirectory();
  for (const text of ['', '{', '[]', 'null', '{"CPU, 4 threads":"fast","card":-1,"x":1e999}']) {
    writeFileSync(join(directory, 'rates-development.json'), text);
    expect(bed(directory).expected.rate()).toBeUndefined();
  }
  const file = new RateFile(directory, 'development');
  for (const rate of [Number.NaN, Number.POSITIVE_INFINITY, 0, -1]) await file.remember('card', rate);
  expect(file.of('card')).toBeUndefined();
});
