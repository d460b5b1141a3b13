/**
 * Peers that earned a good name, or know the cuts first, and then give nothing for as long as they like, beside one
 * honest peer that never had its turn. They break no rule. In virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PeerHeights } from '../../node/network/peers/peer-heights.ts';
import { DeliveryPace } from '../../node/network/sync/delivery-pace.ts';
import { CUT_MILLIS, LiarsBed, passing, pause } from './liars.ts';

const LENGTH = 1_000;
const MUCH = 1_000_000_000;
const MINUTES = 5;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

/** How many seconds of five minutes the node is more than two cuts behind. */
async function secondsBehind(bed: LiarsBed, each: () => void = () => undefined): Promise<number> {
  const timer = setInterval(() => {
    bed.tip++;
    each();
  }, CUT_MILLIS);
  let behind = 0;
  for (let second = 0; second < MINUTES * 60; second++) {
    await passing(() => false, 1_000);
    if (bed.tip - bed.height > 2) behind++;
  }
  clearInterval(timer);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
  expect(bed.blamed.filter((line) => line.startsWith('honest'))).toEqual([]);
  return behind;
}

const honest = (bed: LiarsBed, millis = 100) =>
  bed.join('honest', bed.tip, async (question) => {
    await pause(millis);
    return bed.truth(question);
  });

test.each([12, 40])(
  '%i peers that brought cuts once and are busy late ever since hold up a node only for a while',
  async (count) => {
    const bed = new LiarsBed(LENGTH, 100, 384);
    let isLater = false;
    for (let i = 0; i < count; i++) {
      bed.join(`liar${i}`, bed.tip, async (question) => {
        if (!isLater) return bed.truth(question);
        await pause(1_700);
        return 'busy';
      });
      // Each brought a cut.
      bed.sync.heights.brought(`liar${i}`, true);
    }
    bed.sync.start();
    await passing(() => bed.height === bed.tip, 60_000);
    isLater = true;
    for (let i = 0; i < count; i++) bed.announce(`liar${i}`, MUCH);
    honest(bed);
    const behind = await secondsBehind(bed, () => bed.announce('honest', bed.tip));
    expect(behind).toBeLessThan(90);
  },
);

test.each([2, 12])(
  '%i peers that sent blocks soonest once and are busy late ever since hold up a node only for a while',
  async (count) => {
    const bed = new LiarsBed(LENGTH, 100, 384);
    let isLater = false;
    for (let i = 0; i < count; i++) {
      bed.join(`liar${i}`, bed.tip, async (question) => {
        if (!isLater || question.type !== 'blocks') return bed.truth(question);
        await pause(2_900);
        return 'busy';
      });
      bed.sync.heights.pace.measured(`liar${i}`, Date.now(), [100_000], 1);
    }
    honest(bed);
    bed.sync.start();
    await passing(() => bed.height === bed.tip, 60_000);
    isLater = true;
    const behind = await secondsBehind(bed, () => {
      for (const peer of bed.peers.keys()) bed.announce(peer, bed.tip);
    });
    expect(behind).toBeLessThan(90);
  },
);

test.each([3, 40])('%i peers that announce all cuts first hold up a node only for a while', async (count) => {
  const bed = new LiarsBed(LENGTH, 100, 384);
  for (let i = 0; i < count; i++)
    bed.join(`liar${i}`, MUCH, async () => {
      await pause(15_000 + 317 * i);
      return 'busy';
    });
  // What the honest one says in its hello. Its announcements come second.
  honest(bed);
  bed.height = 100;
  bed.tip = 110;
  bed.sync.start();
  // The first of several announcements of a cut is read at once, the others only of those that follow soon.
  const behind = await secondsBehind(bed, () => {
    for (let i = 0; i < count; i++) bed.announce(`liar${i}`, bed.tip);
    if (bed.tip <= bed.height + 3) bed.announce('honest', bed.tip);
  });
  expect(behind).toBeLessThan(90);
});

test('30 peers that send one block of three, one cut at a time and all just in time hold up a node only for a while', async () => {
  const bed = new LiarsBed(LENGTH, 100, 384);
  for (let i = 0; i < 30; i++) {
    let turn = i;
    bed.join(`liar${i}`, bed.tip, async (question) => {
      if (question.type !== 'blocks') {
        await pause(1_400);
        return bed.truth(question, { head: Math.min(bed.tip, bed.height + 1) });
      }
      if (++turn % 3 === 0) return bed.truth(question);
      await pause(2_900);
      return 'busy';
    });
  }
  bed.height = 100;
  honest(bed);
  bed.sync.start();
  const behind = await secondsBehind(bed, () => {
    for (const peer of bed.peers.keys())
      if (peer !== 'honest' || bed.tip <= bed.height + 3) bed.announce(peer, bed.tip);
  });
  expect(behind).toBeLessThan(180);
});

test('40 peers that bring one cut at a time, soon, do not always come before a slow one that brings all', async () => {
  const bed = new LiarsBed(LENGTH, 100, 384);
  for (let i = 0; i < 40; i++)
    bed.join(`liar${i}`, bed.tip, async (question) => {
      await pause(question.type === 'blocks' ? 900 : 1_400);
      return bed.truth(question, { most: 1 });
    });
  bed.height = 40;
  honest(bed, 3_000);
  bed.sync.start();
  const behind = await secondsBehind(bed, () => {
    for (const peer of bed.peers.keys()) bed.announce(peer, bed.tip);
  });
  expect(behind).toBeLessThan(200);
});

test('a peer that says soon that it is busy keeps its turn, but not for ever', () => {
  const heights = new PeerHeights(() => 0);
  const pace = new DeliveryPace(() => 0);
  for (const peer of ['honest', 'stranger0', 'stranger1']) {
    heights.joined(peer, 9);
    pace.joined(peer);
  }
  const first = { heights: [] as unknown[], pace: [] as unknown[] };
  for (let i = 0; i < 5; i++) {
    first.heights.push(heights.next(5, undefined, undefined, true));
    const [next] = pace.sorted(['honest', 'stranger0', 'stranger1']) as [string];
    first.pace.push(next);
    pace.asked(next);
    if (next === 'honest') pace.busy(next, 0, 1);
    if (first.heights.at(-1) !== 'honest') continue;
    heights.busy('honest');
    Object.assign(heights.get('honest') as object, { restsUntil: 0 });
  }
  const turns = ['honest', 'honest', 'honest', 'honest', 'stranger0'];
  expect(first).toEqual({ heights: turns, pace: turns });
});

test('a peer that is busy now and then is not behind all strangers for it', () => {
  const pace = new DeliveryPace(() => 0);
  for (const peer of ['honest', 'stranger0', 'stranger1', 'stranger2']) pace.joined(peer);
  pace.measured('honest', -100, [1_000], 1);
  for (let i = 0; i < 3; i++) {
    pace.asked('honest');
    pace.busy('honest', 0, 1);
  }
  const all = ['stranger0', 'stranger1', 'stranger2', 'honest'];
  const firsts = Array.from({ length: 4 }, () => {
    const [first] = pace.sorted(all) as [string];
    pace.asked(first);
    return first;
  });
  expect(firsts).toEqual(['honest', 'stranger0', 'honest', 'stranger1']);
});
