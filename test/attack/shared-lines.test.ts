/** Strangers that use up a node's line, or what it may hold of answers: nobody is blamed for an answer that came too late or in part because of them. */
import type { Connection } from '@libp2p/interface';
import { afterEach, expect, test, vi } from 'vitest';
import { AnswerDesk } from '../../node/network/thread/answer-desk.ts';
import { QuestionQueue } from '../../node/network/thread/question-queue.ts';
import { FedStream } from '../network/fed-stream.ts';

const MEBIBYTE = 1_024 * 1_024;
const LIARS = 42;
const ANSWER = new Uint8Array(3 * MEBIBYTE);
const QUESTION = Uint8Array.of(1, 1);
const FOUR_MEBIBYTES = Uint8Array.of(0x80, 0x80, 0x80, 0x02);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

afterEach(() => void vi.restoreAllMocks());

type Opens = () => Promise<unknown>;

/** Asks over a stream, and says why there was no answer. */
async function asked(newStream: Opens): Promise<string> {
  const connection = { status: 'open', remotePeer: 'node', newStream } as unknown as Connection;
  const queue = new QuestionQueue(
    () => connection,
    () => 0,
  );
  return await queue.ask('node', 'sync', new Uint8Array(1)).then(
    () => 'answered',
    (error: { readonly code: string }) => error.code,
  );
}

test('a node that gives up an answer which is read slowly, because forty-two strangers ask at once, is not blamed for it', async () => {
  let now = 0;
  const desk = new AnswerDesk({ serve: async () => ANSWER, fault: () => undefined, steady: () => now });
  const open: FedStream[] = [];
  const asks = async (peer: string) => {
    const stream = new FedStream(peer, false);
    open.push(stream);
    void desk.answer(peer, peer, 'sync', stream);
    stream.brings(QUESTION);
    for (let step = 0; step < 4; step++) await turn();
    return stream;
  };
  const [theirs, ours] = [new FedStream('node'), await asks('honest')];
  const heard = asked(async () => theirs);
  await turn();
  theirs.brings(FOUR_MEBIBYTES, MEBIBYTE);
  ours.addEventListener('close', () => theirs.onRemoteReset());
  now += 2_000;
  for (let i = 0; i < LIARS; i++) await asks(`liar ${i}`);
  expect(ours.status).toBe('aborted');
  expect(await heard).toBe('busy');
  for (const stream of open) stream.abort(new Error('over'));
});

/** Of an answer of 4 MiB so much came when its time is over. */
async function tooLate(bytes: number): Promise<string> {
  const limit = new AbortController();
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
  const stream = new FedStream('node');
  const heard = asked(async () => stream);
  await turn();
  if (bytes > 0) stream.brings(FOUR_MEBIBYTES, bytes);
  await turn();
  limit.abort();
  return await heard;
}

test('a peer of whose answer a part came in its time is not blamed, and one that was silent is', async () => {
  expect(await tooLate(MEBIBYTE)).toBe('busy');
  expect(await tooLate(0)).toBe('unanswered');
});

test('who reads an answer too slowly is not blamed', async () => {
  const limit = new AbortController();
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
  const faults: string[] = [];
  const desk = new AnswerDesk({
    serve: async () => ANSWER,
    fault: (_, fault) => void faults.push(fault),
    steady: () => 0,
  });
  const stream = new FedStream('honest', false);
  const answered = desk.answer('honest', 'honest', 'sync', stream);
  stream.brings(QUESTION);
  for (let step = 0; step < 4; step++) await turn();
  expect(stream.sent).toBeGreaterThan(0);
  limit.abort();
  await answered;
  expect(faults).toEqual([]);
});
