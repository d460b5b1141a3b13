/**
 * Answers on their way, of all peers together: each may have four mebibytes, and take twenty seconds to come, or to be
 * read. Where their bytes are too many, one is given up: of those with at least half of their part of the bytes the one whose
 * peer had most answers that led to nothing, and of these the one that held most for the longest time. So those that drip give
 * way to others, and then to everybody for a while; who was never given up keeps its answer before them, however slow it is.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { PeerName } from './host-types.ts';

/** What a piece counts for at least: each is kept for itself. */
const LEAST_BYTES = 512;
const MAX_PEERS = 1_024;
/** What was in vain counts half as much after so long. */
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
  readonly #steady: SteadyClock;
  readonly #under = new Set<UnderWay>();
  /** How many answers of a peer did not come, or were not read; it fades. */
  readonly #vain = new BoundedMap<PeerName, { readonly times: number; readonly at: number }>(MAX_PEERS);
  #bytes = 0;

  constructor(mostBytes: number, steady: SteadyClock) {
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
    // One that is refused as soon as it is there has held nothing up.
    if (!isHere && this.#heldBy(answer) > 0)
      this.#vain.set(answer.peer, { times: this.#timesInVain(answer.peer) + 1, at: this.#steady() });
  }

  #timesInVain(peer: PeerName): number {
    const vain = this.#vain.get(peer);
    return vain === undefined ? 0 : vain.times * 2 ** ((vain.at - this.#steady()) / HALF_LIFE_MILLIS);
  }

  #heldBy(answer: UnderWay): number {
    const now = this.#steady();
    answer.held += answer.bytes * (now - answer.at);
    answer.at = now;
    return answer.held;
  }

  /** Those with half of their part or more have half of all bytes together: an honest one is never alone among them. */
  #dearest(): UnderWay {
    const least = this.#bytes / this.#under.size / 2;
    const ranked = [...this.#under]
      .filter(({ bytes }) => bytes >= least)
      // The rest of a time would be more than nothing for ever.
      .map((answer) => ({ answer, times: Math.round(this.#timesInVain(answer.peer)), held: this.#heldBy(answer) }));
    const { answer } = ranked.reduce((most, one) =>
      one.times > most.times || (one.times === most.times && one.held > most.held) ? one : most,
    );
    return answer;
  }
}
