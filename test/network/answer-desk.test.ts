/** An answer that is not read in time costs its asker score, if the time was the asker's: this node may have been slow itself. */
import { lpStream, streamPair } from '@libp2p/utils';
import { afterEach, expect, test, vi } from 'vitest';
import { AnswerDesk } from '../../node/network/thread/answer-desk.ts';

afterEach(() => void vi.restoreAllMocks());

/** The faults of a peer whose time is over so long after its question, of which the node takes a part to answer. */
async function faults(millis: number, ofNode: number): Promise<readonly string[]> {
  const limit = new AbortController();
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
  const found: string[] = [];
  let now = 0;
  const isOver = () => now >= millis && limit.abort();
  const desk = new AnswerDesk({
    serve: async () => {
      now += ofNode;
      isOver();
      // The rest passes while the answer is written.
      setImmediate(() => {
        now = millis;
        isOver();
      });
      return new Uint8Array(2 * 1_024 * 1_024);
    },
    fault: (_, fault) => found.push(fault),
    steady: () => now,
  });
  const [theirs, ours] = await streamPair({ protocol: '/svc/sync/1', delay: 100, capacity: 1 });
  await lpStream(theirs).write(Uint8Array.of(1));
  await desk.answer('peer', 'peer', 'sync', ours);
  theirs.abort(new Error('over'));
  return found;
}

test('who does not read an answer in its time is to blame', async () => {
  expect(await faults(20_000, 100)).toEqual(['unread']);
});

test('who got the answer when its time was over, or nearly so, is not', async () => {
  expect(await faults(20_000, 20_000)).toEqual([]);
  expect(await faults(20_000, 19_000)).toEqual([]);
});
