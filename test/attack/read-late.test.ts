/** Many addresses that ask for as much as they can and do not read it, or just in time: others are answered all the same, and what waits is bounded. */
import { expect, test } from 'vitest';
import { AnswerDesk, HELD_BYTES } from '../../node/network/thread/answer-desk.ts';
import { AnswersUnderWay, type UnderWay } from '../../node/network/thread/answers-under-way.ts';
import { FedStream } from '../network/fed-stream.ts';

const MEBIBYTE = 1_024 * 1_024;
const LIARS = 42;
/** The same for all, so that a test needs no room for them; those to liars are parts of it. */
const ANSWER = new Uint8Array(4 * MEBIBYTE);
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
      serve: async (peer) => ANSWER.subarray(0, SIZES[peer] ?? mebibytes * MEBIBYTE),
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

test('nor where each of them asks twelve times at once, before anything of it is answered', async () => {
  const answered = Promise.withResolvers<void>();
  const desk = new AnswerDesk({
    serve: async () => {
      await answered.promise;
      return ANSWER;
    },
    fault: () => undefined,
    steady: () => 0,
  });
  const unread: FedStream[] = [];
  for (let i = 0; i < 12 * LIARS; i++) {
    const stream = new FedStream(`${i}`, false);
    unread.push(stream);
    void desk.answer(`liar ${i % LIARS}`, `liar ${i % LIARS}`, i < 4 * LIARS ? 'sync' : 'relay', stream);
    stream.brings(QUESTION);
  }
  for (let i = 0; i < 8; i++) await turn();
  answered.resolve();
  for (let i = 0; i < 8; i++) await turn();
  const waiting = unread.filter(({ status, sent }) => status === 'open' && sent > MEBIBYTE).length;
  expect(waiting * 4 * MEBIBYTE).toBeLessThanOrEqual(HELD_BYTES.most);
  for (const stream of unread) stream.abort(new Error('over'));
});

test('one that reads slowly is not given up for addresses that ask again and again, and read now and then just in time', () => {
  let now = 0;
  const answers = new AnswersUnderWay(HELD_BYTES.most, () => now);
  let due: (() => void)[] = [];
  const unread = new Set<{ readonly answer: UnderWay; readonly since: number; readonly peer: string }>();
  const asks = (peer: string) => {
    const answer = answers.begin(peer, () => {
      unread.delete(one);
      due.push(() => asks(peer));
    });
    const one = { answer, since: now, peer };
    unread.add(one);
    answers.took(answer, 4 * MEBIBYTE);
  };
  for (let i = 0; i < LIARS; i++) asks(`liar ${i}`);
  let lost = 0;
  for (let round = 0; round < 20; round++) {
    let isLost = false;
    const slow = answers.begin('slow', () => {
      isLost = true;
    });
    answers.took(slow, 4 * MEBIBYTE);
    for (let step = 0; step < 100 && !isLost; step++) {
      now += 100;
      const again = due;
      due = [];
      for (const ask of again) ask();
      for (const one of [...unread])
        if (now - one.since > 19_000) {
          answers.over(one.answer, true);
          unread.delete(one);
          asks(one.peer);
        }
    }
    answers.over(slow, true);
    if (isLost) lost++;
  }
  expect(lost).toBeLessThanOrEqual(4);
});

test('who lost its connection while it read hears that the node is busy, and not nothing, for which it would blame it', async () => {
  let now = 0;
  const desk = new AnswerDesk({ serve: async () => ANSWER, fault: () => undefined, steady: () => now });
  const streams: FedStream[] = [];
  const asks = async (peer: string) => {
    const stream = new FedStream(peer, false);
    streams.push(stream);
    void desk.answer(peer, peer, 'sync', stream);
    stream.brings(QUESTION);
    for (let i = 0; i < 8; i++) await turn();
    now += 10;
    return stream;
  };
  (await asks('honest')).abort(new Error('the connection ended'));
  await turn();
  for (let i = 0; i < 32; i++) await asks(`liar ${i}`);
  // No more than the frame of an empty answer.
  const { status, sent } = await asks('honest');
  expect({ status, sent }).toEqual({ status: 'open', sent: 1 });
  for (const stream of streams) stream.abort(new Error('over'));
});

test('who lost its connection while it read is answered a minute later, however often it asks meanwhile', () => {
  let now = 0;
  const answers = new AnswersUnderWay(HELD_BYTES.most, () => now);
  const lost = answers.begin('honest', () => undefined);
  answers.took(lost, 4 * MEBIBYTE);
  now += 1_000;
  answers.over(lost, false);
  for (let i = 0; i < 32; i++)
    answers.took(
      answers.begin(`liar ${i}`, () => undefined),
      4 * MEBIBYTE,
    );
  let isRefused = true;
  for (let second = 0; second <= 60 && isRefused; second++) {
    now += 1_000;
    isRefused = false;
    const answer = answers.begin('honest', () => {
      isRefused = true;
    });
    answers.took(answer, 4 * MEBIBYTE);
  }
  expect(isRefused).toBe(false);
});
