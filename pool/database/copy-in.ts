/**
 * COPY FROM STDIN that always ends. The driver returns a stream and reports errors on it, but only until its last byte
 * is sent. Later errors of the server (a full disk, a violated constraint, in a small batch any error) go to the statement's
 * promise, which is already resolved: they are lost, and the stream never ends.
 */
import type { Writable } from 'node:stream';
import type { PendingQuery, Row } from 'postgres';

type Rejecting = { reject: (error: Error) => void };

export async function copyIn(statement: PendingQuery<Row[]>, text: string): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const stream: Writable = await statement.writable();
  // From here on the driver's rejections are handled here.
  (statement as unknown as Rejecting).reject = ended.reject;
  stream.once('error', ended.reject).once('finish', () => ended.resolve());
  stream.end(text);
  await ended.promise;
}
