/** Another past, signed with the keys of the true committee, that parts from the true one between two checkpoints. In virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LiarsBed, passing, pause } from './liars.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

test.each([[105], [300]])(
  'no cut between a checkpoint of cut 100 and one of cut %i is executed before it is known to lead to the second',
  async (second) => {
    const bed = new LiarsBed(400, 380, 384, { checkpoints: [100, second] });
    const forged = new LiarsBed(400, 380, 384, { partsAt: 103 });
    bed.join('forger', bed.tip, async (question) => {
      await pause(100);
      return forged.truth(question);
    });
    bed.sync.start();
    await passing(() => bed.blamed.length > 0, 20_000);
    expect(bed.blamed[0]).toMatch(/^forger false_proof its cut \d+ contradicts the checkpoint/);
    expect(bed.height).toBe(100);
    bed.join('honest', bed.tip, async (question) => {
      await pause(100);
      return bed.truth(question);
    });
    expect(await passing(() => bed.height === bed.tip, 60_000)).toBeLessThan(20_000);
    void bed.sync.close();
    await passing(() => false, 60_000, 1_000);
  },
);
