/** One question and one answer over a stream of its own, each a frame with its length before it. Lengths are bounded before anything is read, and everything ends in time. */
import type { Connection, Stream } from '@libp2p/interface';
import { lpStream } from '@libp2p/utils';
import type { Bytes } from '../../../protocol/bytes.ts';

/** Beside the frame itself: its length, and what a hurried peer sends after it. */
const SLACK_BYTES = 1_024;

const framed = (stream: Stream, maxDataLength: number) =>
  lpStream(stream, { maxDataLength, maxBufferSize: maxDataLength + SLACK_BYTES });

export type AnswerLimits = { readonly bytes: number; readonly millis: number };

/** Rejects where there is no whole answer in time. */
export async function ask(
  connection: Connection,
  protocol: string,
  question: Bytes,
  { bytes, millis }: AnswerLimits,
): Promise<Uint8Array> {
  const signal = AbortSignal.timeout(millis);
  const stream = await connection.newStream(protocol, { signal });
  try {
    const frames = framed(stream, bytes);
    await frames.write(question, { signal });
    return (await frames.read({ signal })).subarray();
  } finally {
    // Nothing more is said on it, and a peer that keeps it open must not hold a place here.
    stream.abort(new Error('done'));
  }
}

/** Reads the question of a stream that a peer opened, and writes what `answer` gives; undefined resets the stream. */
export async function answerStream(
  stream: Stream,
  { bytes, millis }: AnswerLimits,
  answer: (question: Uint8Array, signal: AbortSignal) => Promise<Bytes | undefined>,
): Promise<void> {
  const signal = AbortSignal.timeout(millis);
  try {
    const frames = framed(stream, bytes);
    const question = (await frames.read({ signal })).subarray();
    const given = await answer(question, signal);
    if (given === undefined) throw new Error('there is no answer');
    await frames.write(given, { signal });
    await stream.close({ signal });
  } catch (error) {
    stream.abort(error as Error);
    throw error;
  }
}
