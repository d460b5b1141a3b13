/** Thousands of idle connections, from processes of their own, take neither answers nor events from the others. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { SOCKETS } from '../../protocol/api/routes.ts';
import { count } from '../level.ts';
import { ApiBed } from './api-bed.ts';

const PER_CHILD = 2_500;

test('idle sockets cost little memory and disturb nobody', async () => {
  const total = count({ full: 1_000, deep: 10_000 });
  const bed = await ApiBed.forTest({ api: { pingMillis: 600_000 } });
  await bed.bed.seal(2);
  const before = process.memoryUsage().rss;
  for (let left = total; left > 0; left -= PER_CHILD) {
    const child = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('./idle-child.ts', import.meta.url)),
        String(bed.api.address.port),
        String(Math.min(left, PER_CHILD)),
      ],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    onTestFinished(() => void child.kill());
    await new Promise<void>((resolve, reject) => {
      child.stdout.once('data', () => resolve());
      child.once('exit', () => reject(new Error('the child ended')));
    });
  }
  expect(bed.api.sockets()).toBe(Math.floor(total / 2));
  expect((await bed.get('/v1/chain/head')).status).toBe(200);
  const reader = bed.socket(SOCKETS.events.path, SOCKETS.events.subprotocol);
  await reader.until('checkpoint');
  await bed.bed.seal(3);
  for (let height = 3; height <= 5; height++) {
    const frame = await reader.next();
    expect((frame.data.cut as { height: number }).height).toBe(height);
  }
  expect((process.memoryUsage().rss - before) / total).toBeLessThan(100 * 1024);
});
