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

test('a peer is not blamed where this node gives up its answer with the piece that came last', async () => {
  let now = 0;
  const streams: FedStream[] = [];
  const connection = {
    status: 'open',
    remotePeer: 'slow',
    newStream: async () => {
      const stream = new FedStream('slow');
      streams.push(stream);
      return stream;
    },
  } as unknown as Connection;
  const queue = new QuestionQueue(
    () => connection,
    () => now,
  );
  const codes: (string | undefined)[] = [];
  for (let i = 0; i < 23; i++)
    queue
      .ask(`peer ${i}`, 'sync', new Uint8Array(1))
      .catch((error: { readonly code?: string }) => void codes.push(error.code));
  await turn();
  for (const stream of streams) {
    stream.brings(FOUR_MEBIBYTES, 2.75 * MEBIBYTE);
    await turn();
    now += 1_000;
  }
  // Together with this there is more than may be, and nobody has waited longer.
  streams[0]?.brings(new Uint8Array(1), MEBIBYTE);
  await turn();
  expect(codes).toEqual(['not_asked']);
  for (const stream of streams) stream.abort(new Error('over'));
  await turn();
});

test('who lets answers come to nothing gives way first under another name too, as long as it comes from the same address', async () => {
  let now = 0;
  const streams = new Map<string, FedStream>();
  const addressOf = (peer: string) => peer.replace(/'+$/, '');
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
  const queue = new QuestionQueue(
    connectionOf,
    () => now,
    ({ remotePeer }) => addressOf(`${remotePeer}`),
  );
  const gone: string[] = [];
  const brings = async (peer: string, bytes: number) => {
    queue.ask(peer, 'sync', new Uint8Array(1)).catch(() => void gone.push(peer));
    await turn();
    streams.get(peer)?.brings(FOUR_MEBIBYTES, bytes);
    await turn();
    now += 1_000;
  };
  await brings('liar', SENT);
  streams.get('liar')?.abort(new Error('it left'));
  await turn();
  for (let i = 0; i < 20; i++) await brings(`slow ${i}`, SENT);
  await brings("liar'", SENT);
  await brings('another', SENT);
  expect(gone).toEqual(['liar', "liar'"]);
  for (const stream of streams.values()) stream.abort(new Error('over'));
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

/**
 * Whether an answer of four mebibytes that takes a second comes beside others that have stood still for ten, and come again
 * where they are given up. `mebibytes`: what each of them holds. `hasStalled`: another answer of its peer, an hour ago.
 */
function isHeard(mebibytes: readonly number[], hasStalled = false): boolean {
  let now = 0;
  const incoming = new AnswersUnderWay(INCOMING_BYTES, () => now);
  if (hasStalled) {
    const stalled = incoming.begin('honest', () => undefined);
    incoming.took(stalled, 4 * MEBIBYTE);
    now += 20_000;
    incoming.over(stalled, false);
    now += 3_600_000;
  }
  const again: (() => void)[] = [];
  const stands = (name: string, bytes: number) => {
    const answer = incoming.begin(name, () => again.push(() => stands(`${name}'`, bytes)));
    incoming.took(answer, bytes);
  };
  for (const [i, size] of mebibytes.entries()) stands(`liar ${i}`, size * MEBIBYTE);
  now += 10_000;
  let isGivenUp = false;
  const answer = incoming.begin('honest', () => {
    isGivenUp = true;
  });
  for (let piece = 0; piece < 16 && !isGivenUp; piece++) {
    incoming.took(answer, MEBIBYTE / 4);
    now += 1_000 / 16;
    for (const come of again.splice(0)) come();
  }
  return !isGivenUp;
}

const each = (count: number, sizeOf: (i: number) => number) => Array.from({ length: count }, (_, i) => sizeOf(i));

test('an answer that takes a second comes beside many that stand still, however much each of them holds', () => {
  for (const size of [0.5, 0.9, 1.5, 2, 3, 3.9])
    expect([size, isHeard(each(Math.floor(64 / size), () => size))]).toEqual([size, true]);
  expect(isHeard(each(42, (i) => 1.7 - i / 100))).toBe(true);
  expect(isHeard(each(60, (i) => (i % 4 === 0 ? 3.9 : 0.1)))).toBe(true);
});

test('a peer whose answer stood still once is heard as others are an hour later', () => {
  expect(
    isHeard(
      each(21, () => 3),
      true,
    ),
  ).toBe(true);
});
