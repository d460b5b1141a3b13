/**
 * Headers back from the end of an epoch, where the one peer that has them is busy or has nothing when it is asked first:
 * it is asked again, whoever else is asked meanwhile. In virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { encodeCutsAnswer, encodeHeadersAnswer } from '../../node/network/sync/sync-messages.ts';
import { CUT_MILLIS, LiarsBed, passing, pause } from './liars.ts';

const INTERVAL = 384;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

const NOTHING = encodeHeadersAnswer({ headers: [], certificate: undefined });

test.each([
  ['is busy', 'busy', 5],
  ['has none of the headers yet', NOTHING, 5],
  ['does not answer', 'silent', 2],
] as const)(
  'a peer that %s when headers are asked for is asked again, whoever comes meanwhile (%#)',
  async (_, first, times) => {
    const bed = new LiarsBed(900, 700, INTERVAL);
    let asked = 0;
    bed.join('honest', bed.tip, async (question) => {
      await pause(100);
      if (question.type === 'headers' && asked++ < times) return first;
      return bed.truth(question, { isCertified: (height) => height >= INTERVAL });
    });
    // Each says that it has them, holds the question for a while, and then is busy.
    let comes = 0;
    const timer = setInterval(() => {
      bed.tip++;
      bed.announce('honest', bed.tip);
      bed.leave(`other${comes - 6}`);
      bed.join(`other${comes++}`, bed.tip, async () => {
        await pause(12_000);
        return 'busy';
      });
    }, CUT_MILLIS);
    bed.sync.start();
    expect(await passing(() => bed.height >= bed.tip - 2, 120_000)).toBeLessThan(60_000);
    expect(bed.blamed.filter((line) => !line.includes('unanswered'))).toEqual([]);
    clearInterval(timer);
    void bed.sync.close();
    await passing(() => false, 60_000, 1_000);
  },
);

test('headers that nobody has are not waited for any longer than until the chain is past them', async () => {
  const bed = new LiarsBed(1_000, 380, INTERVAL);
  bed.height = 380;
  // Cuts of the running epoch without a certificate: they lead to headers that there are not.
  bed.join('liar', 1_000_000, async (question) => {
    await pause(100);
    return question.type === 'headers' ? 'busy' : bed.truth(question, { isCertified: () => false, most: 3 });
  });
  bed.sync.start();
  bed.tip = 382;
  await passing(() => false, 30_000);
  expect(bed.height).toBe(380);
  // In the next epoch only headers prove the cuts of an honest peer.
  bed.tip = 900;
  bed.height = 384;
  bed.join('honest', bed.tip, async (question) => {
    await pause(100);
    return bed.truth(question, { isCertified: (height) => height >= 2 * INTERVAL });
  });
  expect(await passing(() => bed.height === bed.tip, 120_000)).toBeLessThan(30_000);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});

test('who shows a cut of a newer version, and is busy when its headers are asked for, is not blamed for those that others send', async () => {
  const bed = new LiarsBed(100, 50, INTERVAL);
  bed.height = 49;
  const certificate = { round: 0, signatures: [] };
  const newer = (bytes: Uint8Array) => bytes.with(0, 2);
  let asked = 0;
  bed.join('honest', bed.tip, async (question) => {
    await pause(100);
    const { content, header } = bed.cuts[50] as (typeof bed.cuts)[number];
    if (question.type === 'headers')
      return asked++ === 0 ? 'busy' : encodeHeadersAnswer({ headers: [newer(header)], certificate });
    return encodeCutsAnswer({ head: 50, bodiesFrom: 0 }, [newer(content)], [{ index: 0, certificate }]);
  });
  bed.join('liar', bed.tip, async (question) => {
    await pause(100);
    return question.type === 'headers' ? bed.truth(question) : 'busy';
  });
  bed.sync.start();
  await passing(() => bed.updates.length > 0 || bed.blamed.length > 0, 30_000);
  expect(bed.blamed).toEqual([]);
  expect(bed.updates).toEqual([2]);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});

test('peers that show cuts of a newer version, and are busy when their headers are asked for, cost others no question', async () => {
  const bed = new LiarsBed(900, 700, INTERVAL);
  const certificate = { round: 0, signatures: [] };
  for (let i = 0; i < 30; i++)
    bed.join(`liar${i}`, bed.tip, async (question) => {
      await pause(50);
      if (question.type !== 'cuts') return 'busy';
      const { content } = bed.cuts[question.from] as (typeof bed.cuts)[number];
      return encodeCutsAnswer({ head: 700, bodiesFrom: 0 }, [content.with(0, 2)], [{ index: 0, certificate }]);
    });
  bed.sync.start();
  await passing(() => false, 20_000);
  bed.join('honest', bed.tip, async (question) => {
    await pause(100);
    return question.type === 'cuts' ? 'busy' : bed.truth(question);
  });
  await passing(() => false, 60_000);
  expect(bed.asked.filter(({ peer, type }) => peer === 'honest' && type === 'headers')).toEqual([]);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});
