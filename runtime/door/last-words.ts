/**
 * Ends a connection that is not served: a last answer, a moment to read it, then the socket is destroyed. Closing only
 * our side would let the client decide how long the descriptor is kept.
 */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** The answer to a refused request. */
export type Words = {
  readonly status: number;
  readonly type: string;
  readonly body: string;
};

/** Long enough for a slow client, short enough that thousands of them do not use up the descriptors. */
export const LAST_WORDS_MILLIS = 2_000;

export const headAndBody = ({ status, type, body }: Words): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\ncontent-type: ${type}\r\nconnection: close\r\n` +
  `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/**
 * Writes the text, closes our side and discards further input. The socket closes once the client has closed too, and is
 * destroyed after `millis` otherwise.
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
