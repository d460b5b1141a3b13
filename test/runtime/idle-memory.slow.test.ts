/** When an idle thread collects, and that a process that has grown for a moment is small again. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { shouldCollect } from '../../runtime/idle-memory.ts';

const MEBIBYTE = 1 << 20;
const state = { least: 100 * MEBIBYTE, notBeforeMillis: 1_000 };
const look = { nowMillis: 1_000, utilization: 0.02, resident: 130 * MEBIBYTE };

test('a thread collects when it is idle, the process has grown, and not too often', () => {
  expect(shouldCollect(state, look)).toBe(true);
  expect(shouldCollect(state, { ...look, utilization: 0.2 })).toBe(false);
  expect(shouldCollect(state, { ...look, nowMillis: 999 })).toBe(false);
  expect(shouldCollect(state, { ...look, resident: 112 * MEBIBYTE })).toBe(false);
  // A tenth of a large one.
  expect(shouldCollect({ ...state, least: 1_000 * MEBIBYTE }, { ...look, resident: 1_090 * MEBIBYTE })).toBe(false);
  expect(shouldCollect({ ...state, least: 1_000 * MEBIBYTE }, { ...look, resident: 1_110 * MEBIBYTE })).toBe(true);
});

test('a process that made many objects and is idle again gives most of what it grew by back', async () => {
  const script = `
    import { giveBackIdleMemory } from ${JSON.stringify(new URL('../../runtime/idle-memory.ts', import.meta.url).href)};
    giveBackIdleMemory();
    setInterval(() => console.log(process.memoryUsage.rss()), 500);
    setTimeout(() => {
      // Enough of them live at a time that V8 enlarges the space for new objects.
      let kept = [];
      for (let i = 0; i < 3_000_000; i++) {
        kept.push({ i });
        if (kept.length === 300_000) kept = [];
      }
      console.log('made');
    }, 6_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(child, 'exit');
  const sizes: number[] = [];
  let before = 0;
  for await (const line of createInterface(child.stdout)) {
    if (line === 'made') before = sizes.at(-1) ?? 0;
    else sizes.push(Number(line));
    if (before === 0 || line === 'made') continue;
    // What it was before depends on the machine too, which may take pages of an idle process away: so half of the growth is enough.
    const grown = Math.max(...sizes) - before;
    if (grown > 32 * MEBIBYTE && Number(line) < before + grown / 2) break;
  }
  child.kill();
  await gone;
  expect(Math.max(...sizes)).toBeGreaterThan(before + 32 * MEBIBYTE);
});
