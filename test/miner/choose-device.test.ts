/** Which device a page chooses, and that a throttled card works its part of the time although it cannot stop at once. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { whyNoCard } from '../../miner/browser/choose-device.ts';
import { GPU_RHYTHM, Throttle } from '../../miner/work/throttle.ts';

const LARGE = { maxStorageBufferBindingSize: 2 ** 31 - 4, maxBufferSize: 2 ** 40, maxStorageBuffersPerShaderStage: 8 };
const card = (info: object = {}, limits: object = LARGE) =>
  ({
    requestAdapter: async () => ({
      info: { isFallbackAdapter: false, device: '', description: 'A card', ...info },
      limits,
    }),
  }) as unknown as GPU;

test.each([
  ['a card', card(), undefined],
  ['no WebGPU', undefined, /no WebGPU/],
  ['no adapter', { requestAdapter: async () => null } as unknown as GPU, /no usable graphics adapter/],
  ['a driver that fails', { requestAdapter: () => Promise.reject(new Error('boom')) } as unknown as GPU, /fails: boom/],
  ['a fallback adapter', card({ isFallbackAdapter: true }), /emulated on the processor/],
  ['SwiftShader', card({ description: 'SwiftShader Device (Subzero)' }), /emulated on the processor/],
  ['llvmpipe', card({ device: 'llvmpipe (LLVM 19)' }), /emulated on the processor/],
  ['a small adapter', card({}, { ...LARGE, maxStorageBufferBindingSize: 2 ** 27 }), /too small/],
])('%s', async (_, entry, expected) => {
  const why = await whyNoCard(entry, 24);
  if (expected === undefined) expect(why).toBeUndefined();
  else expect(why).toMatch(expected);
});

test.each([0.05, 0.2, 0.5, 0.9])('a card that is throttled to %d works that part of the time', (part) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let isFed = false;
  let busyUntil = 0;
  let now = 0;
  const throttle = new Throttle(
    {
      rest: () => {
        isFed = false;
      },
      work: () => {
        isFed = true;
      },
    },
    part,
    GPU_RHYTHM,
  );
  throttle.start();
  let busy = 0;
  for (; now < 60_000; now++) {
    // Two dispatches of 45 ms are kept in flight while it may work.
    if (isFed) while (busyUntil - now <= 45) busyUntil = Math.max(busyUntil, now) + 45;
    if (busyUntil > now) busy++;
    vi.advanceTimersByTime(1);
  }
  throttle.stop();
  expect(busy / now).toBeGreaterThan(part * 0.85);
  expect(busy / now).toBeLessThan(part * 1.2 + 0.05);
});
