/** Many addresses that ask for as much as they can and do not read it, or just in time: others are answered all the same, and what waits is bounded. */
import { expect, test } from 'vitest';
import { AnswerDesk, HELD_BYTES } from '../../node/network/thread/answer-desk.ts';
import { FedStream } from '../network/fed-stream.ts';

const MEBIBYTE = 1_024 * 1_024;
const LIARS = 40;
const QUESTION = Uint8Array.of(1, 1);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('forty addresses that read nothing keep no answer from another one, and hold no more than is allowed', async () => {
  let now = 0;
  const faults: string[] = [];
  const desk = new AnswerDesk({
    serve: async (peer) => new Uint8Array(peer === 'honest' ? 1_000 : 4 * MEBIBYTE),
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
  // Two of each, as many as it may have.
  for (let i = 0; i < 2 * LIARS; i++) unread.push(await asks(`liar ${i % LIARS}`, false));
  const waiting = () => unread.filter(({ status, sent }) => status === 'open' && sent > MEBIBYTE).length;
  expect(waiting() * 4 * MEBIBYTE).toBeLessThanOrEqual(HELD_BYTES.most);
  expect(waiting()).toBeGreaterThan(24);
  expect((await asks('honest', true)).sent).toBeGreaterThan(1_000);
  // Also where it wants as much as the others.
  expect((await asks('another', true)).sent).toBeGreaterThan(4 * MEBIBYTE);
  expect(faults).toEqual([]);
  for (const stream of unread) stream.abort(new Error('over'));
});
