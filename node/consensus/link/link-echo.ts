/**
 * Checks that the process at the other end of a connection still runs (consensus rule 22). Received bytes do not prove
 * it: a node in the middle can store what one side sent, and forward it long after that side has gone, a byte at a
 * time. So each side repeatedly sends a random value, and the answer must arrive within a bounded time. Frames have
 * tags, so only the other end itself can answer.
 */
import { randomBytes } from 'node:crypto';
import { type Bytes, concat, equalBytes } from '../../../protocol/bytes.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { ECHO_TYPES } from './message-types.ts';

const VALUE_BYTES = 8;
/** Questions that wait for an answer; older ones are dropped. */
const MAX_WAITING = 16;

export const isEcho = (bytes: Bytes): boolean => bytes[0] === ECHO_TYPES.question || bytes[0] === ECHO_TYPES.answer;

export class LinkEcho {
  /** Oldest first. */
  #waiting: { readonly value: Bytes; readonly at: number }[] = [];
  /** The other end was running at this time, or later. */
  #thereAt: number;

  /** `now` is the start of the connection: the identity of the other end was signed for it. */
  constructor(now: number) {
    this.#thereAt = now;
  }

  question(now: number): Bytes {
    const value = randomBytes(VALUE_BYTES);
    this.#waiting = [...this.#waiting.slice(1 - MAX_WAITING), { value, at: now }];
    return concat(Uint8Array.of(ECHO_TYPES.question), value);
  }

  /** Returns the answer to a question. Throws a ProtocolError if the message is neither. */
  take(bytes: Bytes): Bytes | undefined {
    if (bytes.length !== 1 + VALUE_BYTES) throw new ProtocolError('not_canonical', 'an echo of another length');
    const value = bytes.subarray(1);
    if (bytes[0] === ECHO_TYPES.question) return concat(Uint8Array.of(ECHO_TYPES.answer), value);
    const found = this.#waiting.findIndex((asked) => equalBytes(asked.value, value));
    if (found < 0) return undefined;
    this.#thereAt = (this.#waiting[found] as { at: number }).at;
    this.#waiting = this.#waiting.slice(found + 1);
    return undefined;
  }

  /** How long ago the other end was certainly running. */
  silentFor(now: number): number {
    return now - this.#thereAt;
  }
}
