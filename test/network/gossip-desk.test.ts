/** Announcers of a block that never deliver it, before one that does, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GossipDesk } from '../../node/network/thread/gossip-desk.ts';
import type { Finding } from '../../node/network/thread/host-types.ts';
import { timersOf } from '../own-timers.ts';

let timers: () => number;
beforeEach(() => {
  vi.useFakeTimers();
  timers = timersOf('gossip-desk.ts');
});
afterEach(() => {
  vi.unstubAllGlobals();
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

test('where --max-peers is more than usual, ninety announcers that never deliver do not keep a block away', async () => {
  expect((await delay(90, 'silent')).millis).toBe(19_500);
});

test('a slow announcer is waited for before a second one is asked', async () => {
  expect(await delay(1, 'silent')).toEqual({ millis: 1_500, most: 2 });
});

/** Messages of a second that are processed, of so many peers that send as many as one peer may. */
function processed(peers: number): { byPeer: number[]; floods: number } {
  let floods = 0;
  const desk = new GossipDesk({
    judge: async () => 'ignore',
    flood: () => floods++,
    steady: () => Date.now(),
  });
  const byPeer = Array.from({ length: peers }, () => 0);
  // What may come at once is used up first.
  for (let second = -6; second <= 0; second++) {
    for (let i = 0; i < 512; i++) {
      vi.advanceTimersByTime(i % 2 === 0 ? 2 : 0);
      for (let peer = 0; peer < peers; peer++)
        if (desk.mayCome(`peer ${peer}`, new Uint8Array(60)) && second === 0) (byPeer[peer] as number)++;
    }
    vi.advanceTimersByTime(1_000 - 512);
  }
  desk.close();
  return { byPeer, floods };
}

test('the gossip of all peers together is bounded and shared, and nobody is blamed for what others send', () => {
  const one = processed(1);
  expect(one.byPeer[0]).toBeGreaterThan(500);
  const { byPeer, floods } = processed(42);
  expect(floods).toBe(0);
  const all = byPeer.reduce((sum, each) => sum + each, 0);
  expect(all).toBeLessThanOrEqual(2_100);
  expect(all).toBeGreaterThan(1_900);
  expect(Math.min(...byPeer)).toBeGreaterThan(0.8 * Math.max(...byPeer));
});

test('who repeats a message that was given up, and does not deliver it, keeps it from nobody else', async () => {
  const asked: string[] = [];
  const desk = new GossipDesk({
    judge: async (peer) => {
      asked.push(peer);
      return peer === 'honest' ? 'accept' : await new Promise<Finding>(() => undefined);
    },
    flood: () => undefined,
    steady: () => Date.now(),
  });
  // So much of the liar's is open that nothing more of it is looked at.
  for (let i = 0; i < 16; i++) void desk.judge('liar', 'blocks', `held ${i}`, new Uint8Array(65_536));
  const block = new Uint8Array(400);
  expect(await desk.judge('liar', 'blocks', 'key', block)).toBe('ignore');
  for (let i = 0; i < 8; i++) {
    await vi.advanceTimersByTimeAsync(4_000);
    desk.announced('liar', 'key', block);
  }
  desk.announced('honest', 'key', block);
  await vi.advanceTimersByTimeAsync(2_000);
  desk.close();
  expect(asked).toContain('honest');
});

test('a message that was given up and that the library takes for new again is waited for once, and leaves nothing', async () => {
  let has = false;
  const desk = new GossipDesk({
    judge: async () => (has ? 'accept' : await new Promise<Finding>(() => undefined)),
    flood: () => undefined,
    steady: () => Date.now(),
  });
  const data = new Uint8Array(400_000);
  /** The library forgets what it has seen after two minutes: then it hands it on after this node has looked at it. */
  const comes = () => {
    desk.announced('liar', 'key', data);
    return desk.judge('liar', 'transactions', 'key', data);
  };
  const verdicts: string[] = [];
  for (let i = 0; i < 3; i++) {
    void comes().then((verdict) => verdicts.push(verdict));
    await vi.advanceTimersByTimeAsync(150_000);
  }
  expect(verdicts).toEqual(['ignore', 'ignore', 'ignore']);
  expect([desk.open, timers()]).toEqual([0, 0]);
  has = true;
  expect(await comes()).toBe('accept');
  desk.close();
});

test('what is found late of a message that was given up does not end the wait for the same message, which came again', async () => {
  const answers: ((finding: Finding) => void)[] = [];
  const desk = new GossipDesk({
    judge: () => new Promise<Finding>((resolve) => void answers.push(resolve)),
    flood: () => undefined,
    steady: () => Date.now(),
  });
  const block = new Uint8Array(400);
  const first = desk.judge('slow', 'blocks', 'key', block);
  await vi.advanceTimersByTimeAsync(29_000);
  // It is asked shortly before the message is given up, and answers after that.
  desk.announced('late', 'key');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await first).toBe('ignore');
  const asked = answers.length;
  desk.announced('another', 'key', block);
  expect([desk.open, answers.length]).toEqual([1, asked + 1]);
  for (const answer of answers.slice(0, asked)) answer('ignore');
  await vi.advanceTimersByTimeAsync(1);
  expect(desk.open).toBe(1);
  const again = desk.judge('another', 'blocks', 'key', block);
  answers.at(-1)?.('accept');
  expect(await again).toBe('accept');
  expect([desk.open, timers()]).toEqual([0, 0]);
  desk.close();
});

test('a message whose first announcer leaves waits for each other one that has room for it', async () => {
  const desk = new GossipDesk({
    judge: async (peer) => (peer === 'honest' ? 'accept' : await new Promise<Finding>(() => undefined)),
    flood: () => undefined,
    steady: () => Date.now(),
  });
  // So much of the second one's is open that it has no room.
  for (let i = 0; i < 16; i++) void desk.judge('second liar', 'blocks', `held ${i}`, new Uint8Array(65_536));
  const verdict = desk.judge('first liar', 'blocks', 'key', new Uint8Array(400));
  for (const peer of ['second liar', 'honest']) desk.announced(peer, 'key');
  desk.left('first liar');
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await verdict).toBe('accept');
  desk.left('second liar');
  expect([desk.open, timers()]).toEqual([0, 0]);
  desk.close();
});
