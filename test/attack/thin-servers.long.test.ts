/**
 * Strangers that download from all servers leave an honest asker 30 KB/s of each: a node that syncs asks for so little
 * at once that answers come in time, and catches up. In virtual time, with lines that all answers of a server share.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AskError, faultOf } from '../../node/network/peers/peer-fault.ts';
import { PATIENCE, PartFetch } from '../../node/network/snapshots/part-fetch.ts';
import { CHUNK_BYTES, encodeChunk } from '../../node/network/snapshots/snapshot-messages.ts';
import { decodeCutsAnswer, decodeSyncQuestion } from '../../node/network/sync/sync-messages.ts';
import { MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { CUT_MILLIS, LiarsBed, passing, type Question } from './liars.ts';

const LINE_BYTES_A_MILLI = 30;
/** Of 64 members. */
const CERTIFICATE_BYTES = 64 * 3_309;
const ANSWER_BYTES = 2 * 1_024 * 1_024;
const INTERVAL = 4 * 1_440;
const STEP = 100;
/** Then this node waits no longer, and of an answer of which a part came it takes the peer for busy. */
const MILLIS = 19_900;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
const timers: NodeJS.Timeout[] = [];
afterEach(() => {
  for (const timer of timers.splice(0)) clearInterval(timer);
  vi.useRealTimers();
});

type Sending = { left: number; readonly until: number; readonly done: (isWhole: boolean) => void };

/** One answer's bytes beside the others', until nobody waits for it any more. */
class Line {
  #sending: Sending[] = [];

  constructor() {
    timers.push(setInterval(() => this.#move(), STEP));
  }

  /** Whether it came in time. */
  send(bytes: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#sending.push({ left: bytes, until: Date.now() + MILLIS, done: resolve });
    return promise;
  }

  #move(): void {
    for (const one of this.#sending) one.left -= (STEP * LINE_BYTES_A_MILLI) / this.#sending.length;
    this.#sending = this.#sending.filter(({ left, until, done }) => {
      const isOver = left <= 0 || until <= Date.now();
      if (isOver) done(left <= 0);
      return !isOver;
    });
  }
}

/** Certificates count as long as real ones, and an answer with all of them ends where it is full. */
function answerOf(bed: LiarsBed, question: Question, isKept: (height: number) => boolean) {
  if (question.type !== 'cuts') return { answer: bed.truth(question, { isCertified: isKept }), extra: 0 };
  const { from, count, isBrief } = question;
  let last = Math.min(bed.tip, from + count - 1);
  const room = Math.ceil(ANSWER_BYTES / CERTIFICATE_BYTES);
  const kept = Array.from({ length: Math.max(0, last - from + 1) }, (_, i) => from + i).filter(isKept);
  if (!isBrief && kept.length > room) last = kept[room - 1] as number;
  if (kept.length > 0) last = Math.min(last, kept.at(-1) as number);
  const answer = bed.truth({ ...question, count: Math.max(1, last - from + 1) }, { isCertified: isKept });
  return { answer, extra: decodeCutsAnswer(answer).certificates.size * CERTIFICATE_BYTES };
}

/** `kept`: of how many of the newest cuts servers have the certificates; of others of the ends of batches. `longest`: bytes of the fifth block that is lacking. */
async function catchesUp(behind: number, blockBytes: number, kept: number, longest: number, most: number) {
  const tip = 400;
  const bodyBytes = (height: number) => (height === tip - behind + 5 ? longest : blockBytes);
  const bed = new LiarsBed(tip + most / CUT_MILLIS + 10, tip, INTERVAL, { bodyBytes });
  bed.height = tip - behind;
  timers.push(setInterval(() => void bed.tip++, CUT_MILLIS));
  const isKept = (height: number) => height > bed.tip - kept || (height + 1) % 96 === 0;
  for (let i = 0; i < 4; i++) {
    const line = new Line();
    bed.join(`server${i}`, bed.tip, async (question) => {
      const { answer, extra } = answerOf(bed, question, isKept);
      return (await line.send(answer.length + extra)) ? answer : 'busy';
    });
    timers.push(setInterval(() => bed.announce(`server${i}`, bed.tip), CUT_MILLIS));
  }
  bed.sync.start();
  const took = await passing(() => bed.tip - bed.height <= 4, most, 500);
  void bed.sync.close();
  await passing(() => false, 40_000, 10_000);
  return { took, blamed: bed.blamed };
}

test.each([
  [150, 1_000, 1_440, 1_000],
  [100, 20_000, 1_440, 20_000],
  [250, 5_000, 50, 5_000],
  [20, 1_000, 1_440, MAX_BODY_BYTES],
])(
  'a node %s cuts behind, with blocks of %s bytes, certificates of %s cuts and a block of %s bytes, catches up though each of four servers sends it 30 KB/s',
  async (behind, blockBytes, kept, longest) => {
    const most = 300_000;
    const { took, blamed } = await catchesUp(behind, blockBytes, kept, longest, most);
    expect(took).toBeLessThan(most);
    expect(blamed).toEqual([]);
  },
);

test('a new node has a snapshot of forty parts of a mebibyte from four servers that send it 30 KB/s each', async () => {
  const [length, names] = [1_024 * 1_024, ['a', 'b', 'c', 'd']];
  const lines = new Map(names.map((name) => [name, new Line()]));
  const blamed: string[] = [];
  const fetch = new PartFetch(191, PATIENCE.fetch, {
    holders: () => names,
    ask: async (peer, bytes) => {
      const question = decodeSyncQuestion(bytes);
      if (question.type !== 'part') throw new Error('another question');
      const sent = new Uint8Array(Math.min(CHUNK_BYTES, length - question.from));
      if (await lines.get(peer)?.send(sent.length)) return encodeChunk({ length, bytes: sent });
      throw new AskError('busy', 'a part of the answer came');
    },
    blame: (error, peer) => {
      if (faultOf(error) !== undefined) blamed.push(peer);
    },
    drop: (peer) => void blamed.push(peer),
    steady: () => Date.now(),
  });
  const rules = Array.from({ length: 40 }, () => ({ maxBytes: length, read: (bytes: Uint8Array) => bytes.length }));
  let taken = 0;
  let ended: unknown;
  fetch
    .run(0, rules, async () => void taken++)
    .catch((error: unknown) => {
      ended = error;
    });
  await passing(() => taken === rules.length || ended !== undefined, 1_200_000, 500);
  expect(ended).toBeUndefined();
  expect(taken).toBe(rules.length);
  expect(blamed).toEqual([]);
});
