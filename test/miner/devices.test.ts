/** Which devices there are and which are used; names, tunings and sensors as others write them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chooseDevices, listDevices } from '../../miner/devices/device-list.ts';
import { parseNvidiaSmi, readSensors } from '../../miner/devices/sensors.ts';
import { TuningFile } from '../../miner/devices/tuning-file.ts';
import { ProgressLine, showProgress } from '../../miner/terminal/progress-line.ts';
import { readAdapters } from '../../miner/work/gpu-names.ts';
import { temporaryDirectory } from '../temporary.ts';

const refusal = `no suitable backends found
Available adapters:
 * backend: 'vulkan', name: 'NVIDIA H200'
 * backend: 'vulkan', name: 'NVIDIA H200'
 * backend: 'null', name: 'Null backend'
 * backend: 'vulkan', name: 'llvmpipe (LLVM 15.0.6, 256 bits)'
`;

test('cards are read from the list of the driver layer', () => {
  expect(readAdapters(refusal)).toEqual([
    { name: 'NVIDIA H200', adapter: 'NVIDIA H200', count: 2, software: false },
    { name: 'llvmpipe (LLVM 15.0.6, 256 bits)', adapter: 'llvmpipe (LLVM 15.0.6, 256 bits)', count: 1, software: true },
  ]);
  expect(readAdapters('no suitable backends found')).toEqual([]);
});

test('cards are used where there are any, the processor otherwise, and what is named in any case', () => {
  const listed = listDevices(readAdapters(refusal));
  const bare = listDevices([]);
  const none = { devices: undefined, gpu: true, cpuThreads: undefined };
  const numbers = (wish: Parameters<typeof chooseDevices>[1], from = listed) =>
    chooseDevices(from, wish).map(({ number }) => number);
  expect(numbers(none)).toEqual([1]);
  expect(numbers(none, bare)).toEqual([0]);
  expect(numbers({ ...none, gpu: false })).toEqual([0]);
  expect(numbers({ ...none, cpuThreads: 2 })).toEqual([0, 1]);
  expect(numbers({ ...none, cpuThreads: 0 }, bare)).toEqual([]);
  expect(numbers({ ...none, devices: 'all' })).toEqual([0, 1]);
  expect(numbers({ ...none, devices: [2] })).toEqual([2]);
  expect(() => numbers({ ...none, devices: [9] })).toThrow(expect.objectContaining({ code: 'device_unknown' }));
  expect(() => numbers({ ...none, gpu: false, devices: [1] })).toThrow(
    expect.objectContaining({ code: 'device_unknown' }),
  );
  expect(chooseDevices(bare, { ...none, cpuThreads: 3 })).toMatchObject([{ threads: 3 }]);
});

test('a tuning is remembered per card; a damaged file is as good as none', async () => {
  const directory = temporaryDirectory();
  const tuning = { shape: { variant: 'shuffle', lanes: 8, flight: 4, workgroup: 128 } };
  const file = new TuningFile(directory);
  expect(file.of('card')).toBeUndefined();
  await file.remember('card', tuning);
  await file.remember('other', { shape: { variant: 'x' } });
  expect(new TuningFile(directory).of('card')).toEqual(tuning);
  expect(new TuningFile(directory).of('other')).toBeUndefined();
  writeFileSync(
    join(directory, 'tuning.json'),
    '{"version":2,"devices":{"card":{"shape":{"variant":"shuffle","workgroup":1e9}}}}',
  );
  expect(new TuningFile(directory).of('card')).toBeUndefined();
  writeFileSync(join(directory, 'tuning.json'), '{"vers');
  expect(new TuningFile(directory).of('card')).toBeUndefined();
});

test('sensors: what is not told is not shown, and no program is no error', async () => {
  expect(parseNvidiaSmi('NVIDIA H200, 41, 113.52\nNVIDIA T4, [N/A], [Not Supported]\n')).toEqual([
    { name: 'NVIDIA H200', celsius: 41, watts: 113.52 },
    { name: 'NVIDIA T4', celsius: undefined, watts: undefined },
  ]);
  const root = temporaryDirectory();
  expect(await readSensors('no-such-program', root)).toBeUndefined();
  const put = (folder: string, files: Record<string, string>) => {
    mkdirSync(join(root, folder), { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(root, folder, name), `${text}\n`);
  };
  put('class/drm/card10/device/hwmon/hwmon3', { name: 'amdgpu', temp1_input: '61000', power1_average: '151000000' });
  put('class/drm/card2/device/hwmon/hwmon9', { name: 'amdgpu', temp1_input: 'x', power1_input: '90500000' });
  put('class/drm/card2-HDMI-A-1', { name: 'no card' });
  put('class/hwmon/hwmon0', { name: 'nvme', temp1_input: '40000' });
  put('class/hwmon/hwmon1', { name: 'k10temp', temp1_input: '55250' });
  expect(await readSensors('no-such-program', root)).toEqual({
    cards: [
      { name: 'amdgpu', celsius: undefined, watts: 90.5 },
      { name: 'amdgpu', celsius: 61, watts: 151 },
    ],
    processor: { name: 'k10temp', celsius: 55.25, watts: undefined },
  });
});

test('progress: a bar with the time left in a terminal, few lines in a file, nothing for a moment', () => {
  const at = { epoch: 3, stage: 'dataset', done: 25, total: 100, secondsLeft: 75 } as const;
  expect(showProgress('0: CPU', at)).toBe(
    'device 0: CPU: building dataset of epoch 3 [######..................] 25 %, 1 min 15 s left',
  );
  const run = (isTerminal: boolean, millis: number): string => {
    let now = 0;
    const said: string[] = [];
    const line = new ProgressLine({ isTerminal }, { out: (text) => void said.push(text), now: () => now });
    for (let done = 0; done <= 100; done++) {
      now = (done * millis) / 100;
      line.show('0', { ...at, done });
    }
    line.break();
    return said.join('');
  };
  expect(run(false, 500)).toBe('');
  expect(run(false, 60_000).split('\n').length).toBeLessThan(10);
  expect(run(false, 60_000)).not.toContain('\r');
  expect(run(true, 60_000)).toContain('\r');
  expect(run(true, 60_000).endsWith('100 %\n')).toBe(true);
});
