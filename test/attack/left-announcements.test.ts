/** Strangers that announce what there is not and leave, again and again under new names: what waits here is never more than of those that are connected. In virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GossipDesk } from '../../node/network/thread/gossip-desk.ts';

const MEBIBYTE = 1_024 * 1_024;
/** More than a node has places for peers that come. */
const PLACES = 42;
/** As long as an announcement of a cut with 64 blocks. */
const BYTES = 3_300;
const SECONDS = 32;
/** How many of the places have somebody else after a second. */
const NEW_ONES = 10;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const deskOf = () =>
  new GossipDesk({ judge: async () => 'undelivered', flood: () => undefined, steady: () => Date.now() });

/** Bytes that wait at most, of strangers that come and go; `helper`: a peer that stays and names the same. */
async function waiting(helper?: string): Promise<number> {
  const desk = deskOf();
  const places: string[] = [];
  let [count, most] = [0, 0];
  for (let second = 0; second < SECONDS; second++) {
    for (let i = 0; i < NEW_ONES; i++) {
      const name = `stranger ${second} ${i}`;
      places.push(name);
      for (let message = 0; message < 250; message++) {
        const data = new Uint8Array(BYTES);
        if (!desk.mayCome(name, data)) continue;
        const key = `key ${count++}`;
        void desk.judge(name, 'cuts', key, data);
        if (helper !== undefined) desk.announced(helper, key);
      }
      if (places.length > PLACES) desk.left(places.shift() as string);
    }
    await vi.advanceTimersByTimeAsync(1_000);
    most = Math.max(most, desk.open * BYTES);
  }
  desk.close();
  return most;
}

test('what strangers announced that have left waits no longer', async () => {
  expect(await waiting()).toBeLessThanOrEqual((PLACES + 1) * MEBIBYTE);
});

test('nor where a peer that stays names the same: it counts as its own', async () => {
  expect(await waiting('helper')).toBeLessThanOrEqual((PLACES + 2) * MEBIBYTE);
});

test('what another peer announced too is still asked of it', async () => {
  const asked: string[] = [];
  const desk = new GossipDesk({
    judge: async (peer) => {
      asked.push(peer);
      return peer === 'honest' ? 'accept' : await new Promise(() => undefined);
    },
    flood: () => undefined,
    steady: () => Date.now(),
  });
  const verdict = desk.judge('first', 'cuts', 'key', new Uint8Array(BYTES));
  desk.announced('second', 'key');
  desk.announced('honest', 'key');
  desk.left('first');
  desk.left('second');
  await vi.advanceTimersByTimeAsync(2_000);
  expect([await verdict, asked]).toEqual(['accept', ['first', 'honest']]);
  desk.close();
});
