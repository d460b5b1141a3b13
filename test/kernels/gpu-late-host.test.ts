/**
 * The search's loop on a simulated device and clock, with a host that wakes late, as some machines do by up to 50 ms: dispatches
 * stay near the length that is aimed at, for any length up to 150 ms, and the device has nearly always something to do.
 */
import { expect, test } from 'vitest';
import type { GpuDataset } from '../../kernels/gpu/dataset.ts';
import { type Gpu, Loss } from '../../kernels/gpu/device.ts';
import { type Kernel, RING, Searcher } from '../../kernels/gpu/search.ts';
import { type Band, SEARCH_BAND, steer } from '../../kernels/gpu/steer.ts';
import { Speed, UsageMeter } from '../../kernels/gpu/timeline.ts';

const HASHES_PER_MILLI = 500_000;

/** Timers fire late by `lateness`; the device works its queue off in order and answers at once. */
function simulate(lateness: () => number) {
  let now = 0;
  let freeAt = 0;
  let waiting: { at: number; act: () => void }[] = [];
  const at = (time: number, act: () => void): (() => void) => {
    const entry = { at: time, act };
    waiting.push(entry);
    return () => {
      waiting = waiting.filter((other) => other !== entry);
    };
  };
  let count = 0;
  const times: bigint[] = [];
  const buffer = ({ label = '', size = 0 }: { label?: string; size?: number }) => {
    let doneAt = 0;
    return {
      label,
      set doneAt(value: number) {
        doneAt = value;
      },
      mapAsync: () => new Promise<void>((resolve) => void at(Math.max(now, doneAt), resolve)),
      getMappedRange: () => {
        const bytes = new ArrayBuffer(size);
        new BigUint64Array(bytes, size - 16).set(times.splice(0, 2));
        return bytes;
      },
      unmap: () => undefined,
      destroy: () => undefined,
    };
  };
  let target: { doneAt: number } | undefined;
  const device = {
    createBuffer: buffer,
    createBindGroup: () => ({}),
    createQuerySet: () => ({ destroy: () => undefined }),
    createCommandEncoder: () => ({
      clearBuffer: () => undefined,
      beginComputePass: () => ({
        setPipeline: () => undefined,
        setBindGroup: () => undefined,
        dispatchWorkgroups: () => undefined,
        end: () => undefined,
      }),
      resolveQuerySet: () => undefined,
      copyBufferToBuffer: (_from: unknown, _at: number, to: { doneAt: number }) => {
        target = to;
      },
      finish: () => ({}),
    }),
    queue: {
      writeBuffer: (_buffer: unknown, _at: number, job: Uint32Array) => {
        count = job[10] as number;
      },
      submit: () => {
        const began = Math.max(now, freeAt);
        freeAt = began + count / HASHES_PER_MILLI;
        times.push(BigInt(Math.round(began * 1e6)), BigInt(Math.round(freeAt * 1e6)));
        if (target !== undefined) target.doneAt = freeAt;
      },
    },
  };
  const gpu = {
    device,
    timed: true,
    name: 'simulated',
    limits: { maxComputeWorkgroupsPerDimension: 65_535 },
    patience: 10_000,
    loss: new Loss(),
    clock: {
      now: () => now,
      // The long ones are those of patience, which never fire.
      after: (millis: number, fire: () => void) => at(now + millis + (millis < 1_000 ? lateness() : 0), fire),
    },
  } as unknown as Gpu;
  const run = async (until: number): Promise<void> => {
    while (now < until) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = waiting.reduce((a, b) => (b.at < a.at ? b : a));
      waiting = waiting.filter((entry) => entry !== next);
      now = Math.max(now, next.at);
      next.act();
    }
  };
  return { gpu, run, now: () => now };
}

const kernel = {
  shape: { variant: 'stream', lanes: 8, flight: 6, workgroup: 768 },
  layout: {},
  pipeline: { getBindGroupLayout: () => ({}) },
} as unknown as Kernel;
const dataset = { shards: [] } as unknown as GpuDataset;

async function search(
  band: Band,
  lateness: () => number,
): Promise<{ idle: number; shortest: number; longest: number }> {
  const { gpu, run, now } = simulate(lateness);
  const searcher = new Searcher(gpu, kernel);
  const meter = new UsageMeter();
  const lengths: number[] = [];
  let work = searcher.quantum;
  const loop = async (): Promise<void> => {
    const flying = [];
    for (;;) {
      while (flying.length < RING)
        flying.push(
          searcher.submit(dataset, { prefix: new Uint32Array(8), nonce: 0n, count: work, target: new Uint8Array(32) }),
        );
      const oldest = flying.shift() as ReturnType<Searcher['submit']>;
      await searcher.approach(oldest);
      const { pass } = await searcher.finish(oldest);
      const { count } = oldest.run;
      if (now() > 3_000 && pass !== undefined) {
        meter.add(pass);
        lengths.push(pass.ended - pass.began);
      }
      if (count >= work)
        work = steer({ work: count, millis: searcher.expectedMillis(count) }, band, searcher.quantum, 2 ** 31);
    }
  };
  void loop();
  await run(30_000);
  const { busyMillis, idleMillis } = meter.usage;
  return {
    idle: idleMillis / (busyMillis + idleMillis),
    shortest: Math.min(...lengths),
    longest: Math.max(...lengths),
  };
}

/** Mostly a millisecond, now and then up to 50. */
function lateHost(): () => number {
  let n = 0;
  return () => (++n % 10 === 0 ? 20 + ((n * 7_919) % 31) : (n * 104_729) % 2);
}

test('a prompt host: the device never waits, dispatches are as long as is aimed at', async () => {
  const { idle, shortest, longest } = await search(SEARCH_BAND, () => 0);
  expect(idle).toBeLessThan(0.001);
  expect(shortest).toBeGreaterThanOrEqual(SEARCH_BAND.low * 0.95);
  expect(longest).toBeLessThanOrEqual(SEARCH_BAND.high);
});

test('a late host: little idle time, less than with short dispatches, and the length stays', async () => {
  const long = await search(SEARCH_BAND, lateHost());
  const short = await search({ low: 20, aim: 22, high: 26 }, lateHost());
  expect(long.idle).toBeLessThan(0.005);
  expect(short.idle).toBeGreaterThan(4 * long.idle);
  expect(long.shortest).toBeGreaterThan(25);
  expect(long.longest).toBeLessThan(80);
});

test.each([75, 100, 150])('dispatches of %i ms are steered and slept through as well', async (aim) => {
  const { idle, shortest, longest } = await search({ low: aim * 0.85, aim, high: aim * 1.2 }, lateHost());
  expect(idle).toBeLessThan(0.001);
  expect(shortest).toBeGreaterThan(aim * 0.6);
  expect(longest).toBeLessThan(aim * 1.6);
});

test('speed is that of several dispatches together', () => {
  const speed = new Speed();
  expect(speed.millisPerNonce).toBe(0);
  for (let n = 0; n < 50; n++) speed.add(1_000, n % 2 === 0 ? 60 : 30);
  expect(speed.millisPerNonce).toBeGreaterThan(0.042);
  expect(speed.millisPerNonce).toBeLessThan(0.048);
});

test('idle time is counted between passes that follow each other, not after a rest or a clock that was reset', () => {
  const meter = new UsageMeter();
  meter.add({ began: 0, ended: 40 });
  meter.add({ began: 41, ended: 81 });
  meter.rest();
  meter.add({ began: 500, ended: 540 });
  meter.add({ began: 3, ended: 2 });
  meter.add({ began: 10, ended: 50 });
  expect(meter.usage).toEqual({ busyMillis: 160, idleMillis: 1 });
});
