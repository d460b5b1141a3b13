/** A node that asks as fast as it is answered, for the many small parts of a snapshot, stays below what the other side takes for a flood. In virtual time. */
import type { Connection } from '@libp2p/interface';
import { afterEach, expect, test, vi } from 'vitest';
import { type Protocol, QUESTIONS } from '../../node/network/thread/host-types.ts';
import { QuestionQueue } from '../../node/network/thread/question-queue.ts';
import { type Bucket, fullBucket, take } from '../../runtime/clients/token-bucket.ts';

/** As of a snapshot whose 97 cuts have sixteen blocks each. */
const COUNT = 97 * 16;

afterEach(() => void vi.useRealTimers());

test('honest peers do not take each other’s questions for a flood, however many there are and however fast the answers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: 0 });
  let bucket: Bucket | undefined = fullBucket(QUESTIONS, 0);
  let answered = 0;
  // Counted as the other side does; what is answered is of no interest.
  const connection = {
    status: 'open',
    remotePeer: 'peer',
    newStream: async () => {
      bucket = bucket && take(bucket, QUESTIONS, Date.now());
      if (bucket !== undefined) answered++;
      throw new Error('answered');
    },
  };
  const queue = new QuestionQueue(() => connection as unknown as Connection, Date.now);
  let left = COUNT;
  const ask = async (protocol: Protocol) => {
    while (left-- > 0) await queue.ask('peer', protocol, new Uint8Array(1)).catch(() => undefined);
  };
  const asking = Promise.all([ask('sync'), ask('sync'), ask('relay'), ask('relay')]);
  await vi.advanceTimersByTimeAsync((COUNT / QUESTIONS.perSecond) * 2_000);
  await asking;
  expect(answered).toBe(COUNT);
});
