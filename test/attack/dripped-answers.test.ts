/** Many peers that send most of an answer at once and then nothing: what a node holds of all of them is bounded, and honest answers come all the same. */
import type { Connection } from '@libp2p/interface';
import { expect, test } from 'vitest';
import { AnswersUnderWay } from '../../node/network/thread/answers-under-way.ts';
import { INCOMING_BYTES, QuestionQueue } from '../../node/network/thread/question-queue.ts';
import { FedStream } from '../network/fed-stream.ts';

const MEBIBYTE = 1_024 * 1_024;
const LIARS = 60;
/** Of each liar: less than it says its answer has. */
const SENT = 3 * MEBIBYTE;
const FOUR_MEBIBYTES = Uint8Array.of(0x80, 0x80, 0x80, 0x02);
const TWO_MEBIBYTES = Uint8Array.of(0x80, 0x80, 0x80, 0x01);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('sixty peers whose answers stop before their end hold no more than all may together, and an honest answer comes', async () => {
  let now = 0;
  const streams = new Map<string, FedStream>();
  const connectionOf = (peer: string) =>
    ({
      status: 'open',
      remotePeer: peer,
      newStream: async () => {
        const stream = new FedStream(peer);
        streams.set(peer, stream);
        return stream;
      },
    }) as unknown as Connection;
  const queue = new QuestionQueue(connectionOf, () => now);
  const ask = (peer: string) => queue.ask(peer, 'sync', new Uint8Array(1));
  const codes: (string | undefined)[] = [];
  const liars = Array.from({ length: LIARS }, (_, i) => `liar ${i}`);
  for (const liar of liars) {
    ask(liar).catch((error: { readonly code?: string }) => void codes.push(error.code));
    await turn();
    streams.get(liar)?.brings(FOUR_MEBIBYTES, SENT);
    await turn();
    now += 10;
  }
  const open = liars.filter((liar) => streams.get(liar)?.status === 'open');
  expect(open.length * SENT).toBeLessThanOrEqual(INCOMING_BYTES);
  expect(open.length).toBe(Math.floor(INCOMING_BYTES / (SENT + 4 * 512)));
  // Whose answer this node gave up is not blamed for not answering.
  expect(codes).toEqual(liars.slice(open.length).map(() => 'not_asked'));
  const honest = ask('honest');
  await turn();
  streams.get('honest')?.brings(TWO_MEBIBYTES, 2 * MEBIBYTE);
  expect((await honest).length).toBe(2 * MEBIBYTE);
  for (const liar of open) streams.get(liar)?.abort(new Error('over'));
  await turn();
});

test('a peer whose answers take sixteen seconds is heard beside sixty that fill all the room again and again', () => {
  let now = 0;
  const incoming = new AnswersUnderWay(INCOMING_BYTES, () => now);
  let tries = 0;
  let isHere = false;
  const liar = (name: string) => {
    const answer = incoming.begin(name, () => liar(name));
    const send = () => incoming.took(answer, 3 * MEBIBYTE);
    waiting.push(send);
  };
  let waiting: (() => void)[] = [];
  for (let i = 0; i < LIARS; i++) liar(`liar ${i}`);
  while (!isHere && tries < 10) {
    tries++;
    let isGivenUp = false;
    const answer = incoming.begin('slow', () => {
      isGivenUp = true;
    });
    for (let second = 0; second < 16 && !isGivenUp; second++) {
      incoming.took(answer, MEBIBYTE / 8);
      const due = waiting;
      waiting = [];
      for (const send of due) send();
      now += 1_000;
    }
    isHere = !isGivenUp;
    incoming.over(answer, isHere);
  }
  expect(tries).toBeLessThanOrEqual(3);
});
