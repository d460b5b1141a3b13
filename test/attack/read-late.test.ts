/** Many addresses that ask for as much as they can and do not read it, or just in time: others are answered all the same, and what waits is bounded. */
import { expect, test } from 'vitest';
import { AnswerDesk, HELD_BYTES } from '../../node/network/thread/answer-desk.ts';
import { FedStream } from '../network/fed-stream.ts';

const MEBIBYTE = 1_024 * 1_024;
const LIARS = 42;
/** Of the answers to others. */
const SIZES: Readonly<Record<string, number>> = { honest: 1_000, another: 4 * MEBIBYTE };
const QUESTION = Uint8Array.of(1, 1);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test.each([
  [2, 4],
  [1, 3],
])(
  'forty-two addresses that each ask %i times for %i MiB and read nothing keep no answer from another one, and hold no more than is allowed',
  async (times, mebibytes) => {
    let now = 0;
    const faults: string[] = [];
    const desk = new AnswerDesk({
      serve: async (peer) => new Uint8Array(SIZES[peer] ?? mebibytes * MEBIBYTE),
      fault: (peer, fault) => void faults.push(`${peer} ${fault}`),
      steady: () => now,
    });
    const asks = async (peer: string, reads: boolean) => {
      const stream = new FedStream(peer, reads);
      void desk.answer(peer, peer, 'sync', stream);
      stream.brings(QUESTION);
      for (let i = 0; i < 8; i++) await turn();
      now += 10;
      return stream;
    };
    const unread: FedStream[] = [];
    for (let i = 0; i < times * LIARS; i++) unread.push(await asks(`liar ${i % LIARS}`, false));
    const waiting = () => unread.filter(({ status, sent }) => status === 'open' && sent > MEBIBYTE).length;
    expect(waiting() * mebibytes * MEBIBYTE).toBeLessThanOrEqual(HELD_BYTES.most);
    expect(waiting()).toBeGreaterThan(24);
    expect((await asks('honest', true)).sent).toBeGreaterThan(1_000);
    // Also where it wants as much as the others, or more.
    expect((await asks('another', true)).sent).toBeGreaterThan(4 * MEBIBYTE);
    expect(faults).toEqual([]);
    for (const stream of unread) stream.abort(new Error('over'));
  },
);
