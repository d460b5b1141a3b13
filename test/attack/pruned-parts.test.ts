/** Peers that have only a part of what is asked for, because they pruned the rest or began with a snapshot: each is asked for its part. In virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { encodeHeadersAnswer } from '../../node/network/sync/sync-messages.ts';
import { LiarsBed, passing, pause, type Question } from './liars.ts';

const INTERVAL = 384;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

const ended = async (bed: LiarsBed): Promise<void> => {
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
};

/** Only these blocks. */
function onlyOf(bed: LiarsBed, question: Question, has: (id: Uint8Array, i: number) => boolean): Uint8Array {
  if (question.type !== 'blocks') return bed.truth(question);
  return bed.truth({ ...question, ids: question.ids.map((id, i) => (has(id, i) ? id : id.slice().fill(0))) });
}

test.each([1, 40])(
  'a peer that has pruned the first %i cuts of a batch is asked for the blocks of the others',
  async (lacks) => {
    const bed = new LiarsBed(200, 95, INTERVAL);
    bed.join('drip', bed.tip, async (question) => {
      // Truly and in time: all blocks that only it has, of the others one after 19 seconds.
      const isOnly = question.type !== 'blocks' || bed.height < lacks - 1;
      await pause(isOnly ? 2_500 : 19_000);
      return onlyOf(bed, question, (_, i) => isOnly || i === 0);
    });
    bed.join('honest', bed.tip, async (question) => {
      await pause(100);
      if (question.type === 'cuts') return bed.truth(question, { bodiesFrom: lacks + 1 });
      return onlyOf(bed, question, (id) => bed.heightOf(id) > lacks);
    });
    bed.sync.start();
    expect(await passing(() => bed.height === bed.tip, 600_000)).toBeLessThan(60_000);
    expect(bed.blamed).toEqual([]);
    await ended(bed);
  },
);

test('headers of an epoch come in parts from peers of which none has all', async () => {
  const bed = new LiarsBed(800, 700, INTERVAL);
  const isCertified = (height: number) => height >= INTERVAL;
  bed.join('began with a snapshot', bed.tip, async (question) => {
    await pause(100);
    if (question.type !== 'headers') return bed.truth(question, { isCertified, bodiesFrom: 300 });
    const count = Math.min(question.count, question.to - 300 + 1);
    return count > 0
      ? bed.truth({ ...question, count }, { isCertified })
      : encodeHeadersAnswer({ headers: [], certificate: undefined });
  });
  bed.join('syncs itself', 350, async (question) => {
    await pause(100);
    return bed.truth(question, { head: 350, isCertified });
  });
  bed.sync.start();
  expect(await passing(() => bed.height === bed.tip, 120_000)).toBeLessThan(60_000);
  expect(bed.blamed).toEqual([]);
  await ended(bed);
});
