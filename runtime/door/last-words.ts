/**
 * The end of a connection that is not served: what it is told, a moment to hear it, and then no socket any more. Closing only our
 * side would leave the other side to decide how long the descriptor is kept.
 */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** What a client is told instead of an answer. */
export type Words = {
  readonly status: number;
  readonly type: string;
  readonly body: string;
};

/** Long enough for a reader on the other side of the world, short enough that thousands of others do not matter. */
export const LAST_WORDS_MILLIS = 2_000;

export const headAndBody = ({ status, type, body }: Words): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\ncontent-type: ${type}\r\nconnection: close\r\n` +
  `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/**
 * Says it, closes our side and throws away what still comes. Once the client has closed too the socket is gone by itself;
 * where it does not, the time decides.
 */
export function lastWords(socket: Duplex, text: string, millis = LAST_WORDS_MILLIS): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), millis);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => socket.destroy());
  socket.end(text);
  socket.resume();
}
