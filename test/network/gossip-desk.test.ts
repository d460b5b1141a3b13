/** Announcers of a block that never deliver it, before one that does, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GossipDesk } from '../../node/network/thread/gossip-desk.ts';
import type { Finding } from '../../node/network/thread/host-types.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Milliseconds until a block is here that so many announced before an honest peer did. `how`: they are silent, or say that they have nothing. */
async function delay(liars: number, how: 'silent' | 'refusing'): Promise<{ millis: number; most: number }> {
  let [asking, most] = [0, 0];
  const desk = new GossipDesk({
    judge: async (peer) => {
      most = Math.max(most, ++asking);
      if (peer === 'honest') return 'accept';
      if (how === 'silent') return await new Promise<Finding>(() => undefined);
      asking--;
      return 'undelivered';
    },
    flood: () => undefined,
    steady: () => Date.now(),
  });
  const began = Date.now();
  const verdict = desk.judge('liar 0', 'blocks', 'key', new Uint8Array(400)).then((found) => {
    expect(found).toBe('accept');
    return Date.now() - began;
  });
  for (let i = 1; i < liars; i++) desk.announced(`liar ${i}`, 'key');
  desk.announced('honest', 'key');
  await vi.advanceTimersByTimeAsync(60_000);
  desk.close();
  return { millis: await verdict, most };
}

test('eight announcers that never deliver delay a block by 4.5 s, all of fifty peers but one by 12 s', async () => {
  expect((await delay(8, 'silent')).millis).toBe(4_500);
  expect((await delay(49, 'silent')).millis).toBe(12_000);
  expect((await delay(49, 'refusing')).millis).toBeLessThan(10);
});

test('a slow announcer is waited for before a second one is asked', async () => {
  expect(await delay(1, 'silent')).toEqual({ millis: 1_500, most: 2 });
});
