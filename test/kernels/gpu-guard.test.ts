/** Waiting for a device: its answer, its silence and its loss, and that nothing is left behind after millions of dispatches. */
import { expect, test } from 'vitest';
import { type Gpu, guarded, Loss } from '../../kernels/gpu/device.ts';
import { GpuError } from '../../kernels/gpu/gpu-error.ts';

/** As much of a device as waiting needs; timers fire when told to. */
function fakeGpu() {
  const timers = new Set<() => void>();
  const clock = {
    now: () => 0,
    after(_millis: number, fire: () => void) {
      timers.add(fire);
      return () => void timers.delete(fire);
    },
  };
  const loss = new Loss();
  return { gpu: { name: 'fake', patience: 1, clock, loss } as unknown as Gpu, loss, timers };
}
const lost = new GpuError('gpu_device_lost', 'gone');

test('an answer leaves neither a timer nor a listener', async () => {
  const { gpu, loss, timers } = fakeGpu();
  for (let i = 0; i < 100; i++) expect(await guarded(gpu, Promise.resolve(i), 'a dispatch')).toBe(i);
  expect([loss.listeners, timers.size]).toEqual([0, 0]);
});

test('silence is an error, and nothing is left', async () => {
  const { gpu, loss, timers } = fakeGpu();
  const waiting = guarded(gpu, new Promise(() => {}), 'a dispatch');
  for (const fire of timers) fire();
  await expect(waiting).rejects.toMatchObject({ code: 'gpu_hung' });
  expect([loss.listeners, timers.size]).toEqual([0, 0]);
});

test('the loss rejects all waits, also those that begin after it', async () => {
  const { gpu, loss, timers } = fakeGpu();
  const waiting = [1, 2].map(() => guarded(gpu, new Promise(() => {}), 'a dispatch'));
  loss.tell(lost);
  for (const one of waiting) await expect(one).rejects.toBe(lost);
  await expect(guarded(gpu, new Promise(() => {}), 'a dispatch')).rejects.toBe(lost);
  expect([loss.listeners, timers.size]).toEqual([0, 0]);
});

test('a refused mapping waits a moment for the loss, which tells more', async () => {
  const refused = () => Promise.reject(new Error('mapping refused'));
  const going = fakeGpu();
  const told = guarded(going.gpu, refused(), 'a dispatch');
  await Promise.resolve();
  going.loss.tell(lost);
  await expect(told).rejects.toBe(lost);

  const staying = fakeGpu();
  const plain = guarded(staying.gpu, refused(), 'a dispatch');
  await Promise.resolve();
  const [, moment] = staying.timers;
  moment?.();
  await expect(plain).rejects.toThrow('mapping refused');
});
