/**
 * COPY FROM STDIN that always ends. The driver hands out a stream and from then on tells that stream of errors, but only until its last byte
 * is sent. What the server finds wrong after that (a full disk, a row that breaks a rule, in a small batch any fault at all) it tells
 * the statement, which is resolved long since: nobody hears it, and whoever waits for the stream waits for ever.
 */
import type { Writable } from 'node:stream';
import type { PendingQuery, Row } from 'postgres';

type Rejecting = { reject: (error: Error) => void };

export async function copyIn(statement: PendingQuery<Row[]>, text: string): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const stream: Writable = await statement.writable();
  // From here on the driver's own way to reject leads here.
  (statement as unknown as Rejecting).reject = ended.reject;
  stream.once('error', ended.reject).once('finish', () => ended.resolve());
  stream.end(text);
  await ended.promise;
}
