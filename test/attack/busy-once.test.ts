/**
 * Blocks of proven cuts, where the one honest peer is busy or silent when it is asked first:
 * it is asked again in the same batch, whatever the others do. In virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CHUNK_BYTES } from '../../node/network/snapshots/snapshot-messages.ts';
import { LiarsBed, passing, pause } from './liars.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

test.each(['busy', 'silent'] as const)(
  'a peer that is %s once when blocks are asked for is asked for them again, beside one that brings a block in 12 seconds',
  async (first) => {
    const bed = new LiarsBed(200, 100, 384);
    let asked = 0;
    bed.join('honest', bed.tip, async (question) => {
      await pause(100);
      return question.type === 'blocks' && asked++ === 0 ? first : bed.truth(question);
    });
    bed.join('liar', 0, async (question) => {
      await pause(12_000);
      if (question.type !== 'blocks') return 'busy';
      return bed.truth({ ...question, ids: question.ids.map((id, i) => (i === 0 ? id : id.slice().fill(0))) });
    });
    bed.sync.start();
    expect(await passing(() => bed.height === bed.tip, 600_000)).toBeLessThan(60_000);
    expect(bed.blamed.filter((line) => line.startsWith('honest') && !line.includes('unanswered'))).toEqual([]);
    void bed.sync.close();
    await passing(() => false, 60_000, 1_000);
  },
);

test('a peer that is busy at every second question brings a block in parts', async () => {
  const bed = new LiarsBed(200, 100, 384, { bodyBytes: () => 2 * CHUNK_BYTES });
  bed.height = 98;
  let asked = 0;
  bed.join('honest', bed.tip, async (question) => {
    await pause(100);
    return question.type === 'blockPart' && asked++ % 2 === 1 ? 'busy' : bed.truth(question);
  });
  bed.sync.heights.orders.blocks.took('honest', 1 / 64, 'late');
  bed.sync.start();
  expect(await passing(() => bed.height === bed.tip, 60_000)).toBeLessThan(60_000);
  expect(asked).toBeGreaterThan(3);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});
