/** A config file that changes while a program runs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { followConfig } from '../../miner/config-watch.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

test('a change that comes while one before it is still being applied waits for that, so that none leaves a pool or a device behind', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const path = join(temporaryDirectory(), 'config.toml');
  let written = 0;
  const change = async () => {
    writeFileSync(path, 'x'.repeat(++written));
    await vi.advanceTimersByTimeAsync(2_000);
  };
  await change();
  const held: (() => void)[] = [];
  const begun: number[] = [];
  const apply = () => {
    begun.push(written);
    return new Promise<void>((resolve, reject) =>
      held.push(begun.length === 1 ? () => reject(new Error('wrong')) : resolve),
    );
  };
  onTestFinished(followConfig(path, () => ({ kind: 'run', values: {} }) as never, apply, quietLog));
  await change();
  await change();
  expect(begun).toEqual([2]);
  held[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual([2, 3]);
});
