/**
 * One request and one answer over a separate stream, each a frame with a length prefix. Lengths are checked before
 * anything is read, and everything has a time limit.
 */
import type { Connection, Stream } from '@libp2p/interface';
import { lpStream } from '@libp2p/utils';
import type { Bytes } from '../../../protocol/bytes.ts';
import type { AnswersUnderWay } from './answers-under-way.ts';

/** Bytes besides the frame itself: its length, and data that a peer sends early. */
const SLACK_BYTES = 1_024;

const framed = (stream: Stream, maxDataLength: number) =>
  lpStream(stream, { maxDataLength, maxBufferSize: maxDataLength + SLACK_BYTES });

/** The peer gave its answer up, or only a part came in time: others may use its line, or the room that it has for answers. */
class UnfinishedError extends Error {
  override readonly name = 'UnfinishedError';
}

export type AnswerLimits = { readonly bytes: number; readonly millis: number };

/** Rejects if no complete answer arrives in time. `incoming`: where what has come of it is counted, and may be given up. */
export async function ask(
  connection: Connection,
  protocol: string,
  question: Bytes,
  { bytes, millis }: AnswerLimits,
  incoming?: { readonly answers: AnswersUnderWay; readonly holder: string },
): Promise<Uint8Array> {
  const signal = AbortSignal.timeout(millis);
  const stream = await connection.newStream(protocol, { signal });
  let givenUp: Error | undefined;
  const answer = incoming?.answers.begin(incoming.holder, (reason) => {
    givenUp = reason;
    // Not while a piece of it is being handed out.
    queueMicrotask(() => stream.abort(reason));
  });
  try {
    if (answer !== undefined)
      stream.addEventListener('message', ({ data }) => incoming?.answers.took(answer, data.byteLength));
    const frames = framed(stream, bytes);
    await frames.write(question, { signal });
    const here = (await frames.read({ signal })).subarray();
    if (answer !== undefined) incoming?.answers.over(answer, true);
    return here;
  } catch (error) {
    // Where a piece has just come, the library says that the peer ended it.
    if (givenUp !== undefined) throw givenUp;
    const isUnfinished = stream.status === 'reset' || (signal.aborted && answer !== undefined && answer.bytes > 0);
    throw isUnfinished ? new UnfinishedError((error as Error).message) : error;
  } finally {
    if (answer !== undefined) incoming?.answers.over(answer, false);
    // Nothing more is sent on it, and a peer that keeps it open must not occupy a slot here.
    stream.abort(new Error('done'));
  }
}

/** Reads the request on a stream that a peer opened, and writes the result of `answer`; undefined resets the stream. */
export async function answerStream(
  stream: Stream,
  { bytes, millis }: AnswerLimits,
  answer: (question: Uint8Array) => Promise<Bytes | undefined>,
): Promise<void> {
  const signal = AbortSignal.timeout(millis);
  try {
    const frames = framed(stream, bytes);
    const question = (await frames.read({ signal })).subarray();
    const given = await answer(question);
    if (given === undefined) throw new Error('there is no answer');
    await frames.write(given, { signal });
    await stream.close({ signal });
  } catch (error) {
    stream.abort(error as Error);
    throw error;
  }
}
