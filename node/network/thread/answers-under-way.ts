/**
 * Answers on their way, of all peers together: each may have four mebibytes, and take twenty seconds to come, or to be
 * read. Where their bytes are too many, the one is given up, of those with at least half of their part of the bytes, that
 * held most for the longest time, together with what its peer held lately for nothing. An honest answer is over soon after most
 * of its bytes, so those that drip go first; who lets many bytes wait again and again goes before an honest peer that is
 * slow.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { PeerName } from './host-types.ts';

/** What a piece counts for at least: each is kept for itself. */
const LEAST_BYTES = 512;
const MAX_PEERS = 1_024;
/** What was held for nothing counts half as much after so long. */
const HALF_LIFE_MILLIS = 60_000;

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
  /** Held for answers that did not come, less what was held for those that came since, and when that was counted. */
  readonly #wasted = new BoundedMap<PeerName, { readonly held: number; readonly at: number }>(MAX_PEERS);
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
    const wasted = this.#wastedBy(answer.peer) + (isHere ? -held : held);
    if (wasted > 0) this.#wasted.set(answer.peer, { held: wasted, at: answer.at });
    else this.#wasted.delete(answer.peer);
  }

  #heldBy(answer: UnderWay): number {
    const now = this.#steady();
    answer.held += answer.bytes * (now - answer.at);
    answer.at = now;
    return answer.held;
  }

  #wastedBy(peer: PeerName): number {
    const wasted = this.#wasted.get(peer);
    return wasted === undefined ? 0 : wasted.held * 0.5 ** ((this.#steady() - wasted.at) / HALF_LIFE_MILLIS);
  }

  /** Those with half of their part or more have half of all bytes together: an honest one is never alone among them. */
  #dearest(): UnderWay {
    const least = this.#bytes / this.#under.size / 2;
    const cost = (answer: UnderWay) => this.#heldBy(answer) + this.#wastedBy(answer.peer);
    return [...this.#under]
      .filter(({ bytes }) => bytes >= least)
      .reduce((most, answer) => (cost(answer) > cost(most) ? answer : most));
  }
}
