/**
 * Answers with cuts that only headers can prove, which nobody has: a peer that says that it has them holds up nobody
 * else. In virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { encodeCutsAnswer } from '../../node/network/sync/sync-messages.ts';
import { LiarsBed, passing, pause } from './liars.ts';

const INTERVAL = 384;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

test.each([
  ['the end of the epoch', []],
  ['a checkpoint', [370]],
])('a peer that claims the headers of %s and is busy holds up no peer that syncs itself', async (_, checkpoints) => {
  const bed = new LiarsBed(400, 380, INTERVAL, { checkpoints });
  let head = 40;
  const growing = setInterval(() => {
    head = Math.min(bed.tip, head + 1);
  }, 50);
  // Of the cuts that it has it keeps the certificates of the last of each batch, and of the newest of the chain.
  bed.join('honest', head, async (question) => {
    await pause(100);
    return bed.truth(question, { head, isCertified: (height) => (height + 1) % 96 === 0 || height === bed.tip });
  });
  bed.join('liar', 1_000_000, async () => {
    await pause(100);
    return 'busy';
  });
  bed.sync.start();
  expect(await passing(() => bed.height === bed.tip, 300_000)).toBeLessThan(60_000);
  expect(bed.blamed).toEqual([]);
  clearInterval(growing);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});

test('headers are not asked for any more once the sync is closed', async () => {
  const bed = new LiarsBed(400, 380, INTERVAL);
  bed.join('liar', 1_000_000, async (question) => {
    await pause(1_000);
    if (question.type !== 'cuts') return 'busy';
    const { content } = bed.cuts[question.from] as (typeof bed.cuts)[number];
    return encodeCutsAnswer({ head: 1_000_000, bodiesFrom: 0 }, [content], []);
  });
  bed.sync.start();
  await passing(() => false, 500);
  let isClosed = false;
  void bed.sync.close().then(() => {
    isClosed = true;
  });
  await passing(() => false, 5_000);
  expect(isClosed).toBe(true);
  const before = bed.asked.length;
  await passing(() => false, 60_000);
  expect(bed.asked.length).toBe(before);
});

test("a node has each epoch's last certificate, whoever sent the cuts without it", async () => {
  const bed = new LiarsBed(900, 700, INTERVAL);
  const isCertified = (height: number) => height >= INTERVAL;
  bed.join('liar', bed.tip, async (question) => {
    await pause(50);
    if (question.type !== 'cuts' || question.from >= INTERVAL) return bed.truth(question, { isCertified });
    const last = Math.min(question.from + question.count, INTERVAL);
    const cuts = bed.cuts.slice(question.from, last).map(({ content }) => content);
    return encodeCutsAnswer({ head: bed.tip, bodiesFrom: 0 }, cuts, []);
  });
  bed.sync.start();
  await passing(() => bed.height >= INTERVAL || !bed.peers.has('liar'), 60_000);
  bed.join('honest', bed.tip, async (question) => {
    await pause(100);
    return bed.truth(question, { isCertified });
  });
  expect(await passing(() => bed.height === bed.tip, 120_000)).toBeLessThan(30_000);
  expect(bed.certified.has(INTERVAL - 1)).toBe(true);
  expect(bed.blamed.filter((line) => line.startsWith('honest'))).toEqual([]);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});
