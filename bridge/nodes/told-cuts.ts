/**
 * The order in which nodes told of cuts, whatever their heights and chains, and whichever node serves. A header can be known once
 * the cut is that it builds on. So what its hashes count for follows this order (session/jobs.ts): by heights, whoever knew the
 * templates of another node could choose among prices when that one began to serve.
 */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { notePlace } from '../session/extranonce.ts';

/** Hours of cuts, also of a node that catches up. */
const MOST_CUTS = 16_384;
/** Cuts that come sooner after one another have one place: a node that catches up tells of many at once, and who knows the newest may know them all. */
export const PLACE_MILLIS = 2_000;

export class ToldCuts {
  readonly #memory: SharedArrayBuffer;
  readonly #now: SteadyClock;
  readonly #places = new BoundedMap<string, number>(MOST_CUTS);
  #last = 0;
  #lastMillis = Number.NEGATIVE_INFINITY;

  /** The newest place goes to the memory that all listener threads share. */
  constructor(memory: SharedArrayBuffer, now: SteadyClock) {
    this.#memory = memory;
    this.#now = now;
  }

  /** The place of a cut: that of its first telling. */
  tell(cutId: string): number {
    const known = this.#places.get(cutId);
    if (known !== undefined) return known;
    const now = this.#now();
    if (now - this.#lastMillis >= PLACE_MILLIS) {
      this.#last++;
      this.#lastMillis = now;
      notePlace(this.#memory, this.#last);
    }
    this.#places.set(cutId, this.#last);
    return this.#last;
  }
}
