/**
 * Peers that earned a good name, or know the cuts first, and then give nothing for as long as they like, beside one
 * honest peer that never had its turn. They break no rule. In virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { AskOrder } from '../../node/network/sync/ask-order.ts';
import { type Answer, CUT_MILLIS, LiarsBed, passing, pause, type Question } from './liars.ts';

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

const brought = (order: AskOrder, peer: string) => order.over(order.asked(peer), 1);

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
      brought(bed.sync.heights.orders.cuts, `liar${i}`);
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
      brought(bed.sync.heights.orders.blocks, `liar${i}`);
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

const LATER: Readonly<Record<string, (bed: LiarsBed, question: Question) => ReturnType<Answer>>> = {
  'answer in the last moment': async (bed, question) => {
    await pause(19_000);
    return bed.truth(question);
  },
  'are busy, and say so late': async () => {
    await pause(1_400);
    return 'busy';
  },
};

test.each(Object.entries(LATER))(
  'forty that brought a cut, claim much and then %s hold up a node at the newest cut once',
  async (_, later) => {
    const bed = new LiarsBed(LENGTH, 100, 384);
    const names = Array.from({ length: 40 }, (_, i) => `liar${i}`);
    let isLater = false;
    for (const name of names) {
      bed.join(name, 1, async (question) =>
        isLater && question.type === 'cuts' ? await later(bed, question) : bed.truth(question),
      );
      brought(bed.sync.heights.orders.cuts, name);
    }
    honest(bed);
    const timer = setInterval(() => bed.announce('honest', ++bed.tip), CUT_MILLIS);
    bed.sync.start();
    await passing(() => bed.height === bed.tip, 60_000);
    isLater = true;
    for (const name of names) bed.announce(name, MUCH);
    let behind = 0;
    for (let second = 0; second < 200; second++) {
      await passing(() => false, 1_000);
      if (bed.tip - bed.height > 2) behind++;
    }
    expect(behind).toBeLessThan(30);
    expect(bed.blamed.filter((line) => line.startsWith('honest'))).toEqual([]);
    clearInterval(timer);
    void bed.sync.close();
    await passing(() => false, 30_000, 1_000);
  },
);

test('cuts that the head passed by another way are no merit of who brings them: nothing shows that they are the chain’s', async () => {
  const bed = new LiarsBed(LENGTH, 20, 384);
  bed.height = 10;
  let asked = 0;
  bed.join('liar', bed.tip, async (question) => {
    if (asked++ > 0) return 'silent';
    await pause(1_000);
    const answer = Buffer.from(bed.truth(question));
    // Another state root of the last cut.
    answer[answer.lastIndexOf(bed.cuts[20]?.header as Uint8Array) + 130]! ^= 1;
    return answer;
  });
  bed.sync.start();
  await passing(() => asked > 0, 1_000);
  bed.height = 22;
  await passing(() => false, 2_000);
  expect(bed.sync.heights.get('liar')).toMatchObject({ proven: -1, claim: 20 });
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});
