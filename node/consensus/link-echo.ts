/**
 * Whether the process at the other end of a connection still runs (consensus rule 22). Bytes alone do not say so: a node between two others can keep what one of them sent, and hand it on long after that one has gone, a byte at a
 * time. So each side asks with a random value, again and again, and the answer has to come within a bounded time. Frames have tags, so only the other end itself can answer.
 */
import { randomBytes } from 'node:crypto';
import { type Bytes, concat, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';

/** Beside those of consensus, blocks and the roll call. */
export const ECHO_TYPES = { question: 12, answer: 13 } as const;
const VALUE_BYTES = 8;
/** Questions that wait for their answer; older ones are forgotten. */
const MAX_WAITING = 16;

export const isEcho = (bytes: Bytes): boolean => bytes[0] === ECHO_TYPES.question || bytes[0] === ECHO_TYPES.answer;

export class LinkEcho {
  /** Oldest first. */
  #waiting: { readonly value: Bytes; readonly at: number }[] = [];
  /** The other end was there at this time, or later. */
  #thereAt: number;

  /** `now`: of a connection that begins. The identity of the other end is made for it. */
  constructor(now: number) {
    this.#thereAt = now;
  }

  question(now: number): Bytes {
    const value = randomBytes(VALUE_BYTES);
    this.#waiting = [...this.#waiting.slice(1 - MAX_WAITING), { value, at: now }];
    return concat(Uint8Array.of(ECHO_TYPES.question), value);
  }

  /** Gives back the answer to a question. Throws a ProtocolError for what is neither. */
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

  /** How long ago the other end was surely there. */
  silentFor(now: number): number {
    return now - this.#thereAt;
  }
}
