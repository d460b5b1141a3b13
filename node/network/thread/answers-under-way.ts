/**
 * Answers on their way, of all peers together: each may have four mebibytes, and take twenty seconds to come, or to be
 * read. Where their bytes are too many, the one is given up, of those with at least their part of the bytes, that held
 * most for the longest time, together with what its peer held before for nothing. An honest answer is over soon after most
 * of its bytes, so those that drip go first; who lets many bytes wait again and again goes before an honest peer that is
 * slow.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { PeerName } from './host-types.ts';

/** What a piece counts for at least: each is kept for itself. */
const LEAST_BYTES = 512;
const MAX_PEERS = 1_024;

class GivenUpError extends Error {
  override readonly name = 'GivenUpError';
}

export type UnderWay = {
  readonly peer: PeerName;
  readonly giveUp: (reason: Error) => void;
  bytes: number;
  /** Bytes by the milliseconds for which they were held, until `at`. */
  held: number;
  at: number;
};

export class AnswersUnderWay {
  readonly #most: number;
  readonly #steady: () => number;
  readonly #under = new Set<UnderWay>();
  /** Held for answers that did not come, less what was held for those that came since. */
  readonly #wasted = new BoundedMap<PeerName, number>(MAX_PEERS);
  #bytes = 0;

  constructor(mostBytes: number, steady: () => number) {
    this.#most = mostBytes;
    this.#steady = steady;
  }

  /** `peer`: or the address that it shares with others. */
  begin(peer: PeerName, giveUp: UnderWay['giveUp']): UnderWay {
    const answer = { peer, giveUp, bytes: 0, held: 0, at: this.#steady() };
    this.#under.add(answer);
    return answer;
  }

  took(answer: UnderWay, length: number): void {
    if (!this.#under.has(answer)) return;
    const bytes = Math.max(LEAST_BYTES, length);
    this.#heldBy(answer);
    answer.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#most) {
      const dearest = this.#dearest();
      this.over(dearest, false);
      dearest.giveUp(new GivenUpError('too much was under way'));
    }
  }

  /** `isHere`: or it comes no more, or is not read. */
  over(answer: UnderWay, isHere: boolean): void {
    if (!this.#under.delete(answer)) return;
    this.#bytes -= answer.bytes;
    const held = this.#heldBy(answer);
    const wasted = (this.#wasted.get(answer.peer) ?? 0) + (isHere ? -held : held);
    if (wasted > 0) this.#wasted.set(answer.peer, wasted);
    else this.#wasted.delete(answer.peer);
  }

  #heldBy(answer: UnderWay): number {
    const now = this.#steady();
    answer.held += answer.bytes * (now - answer.at);
    answer.at = now;
    return answer.held;
  }

  /** Of those that have at least their part of all bytes. */
  #dearest(): UnderWay {
    const part = this.#bytes / this.#under.size;
    const cost = (answer: UnderWay) => this.#heldBy(answer) + (this.#wasted.get(answer.peer) ?? 0);
    return [...this.#under]
      .filter(({ bytes }) => bytes >= part)
      .reduce((most, answer) => (cost(answer) > cost(most) ? answer : most));
  }
}
