/**
 * Whether the newest cut here is the newest there is (network rule 12), the same for every role. Two things count: the
 * best height that was proven to this node, and the age of its newest cut, which the pace bounds. A node arrives when
 * its newest cut is so young that it can be the newest; from then on it stays until the cut is too old for the pace,
 * because cuts are withheld from it or none are made. What peers only claim is not asked here.
 */

/** Cuts that a synced node may be behind what is proven. */
export const TOLERATED_CUTS = 2;
/** A newest cut is hardly older than this: the rounds of a cut whose first proposers are away. */
const ARRIVED_CUTS = 4;
const ARRIVED_MILLIS = 5_000;
/**
 * A quarter of the registration window: if the chain goes on unheard, even at twice its pace, work on this cut can
 * still be registered.
 */
const OLD_CUTS = 24;
const OLD_MILLIS = 10_000;

export type TipFacts = {
  /** Of the newest cut here. */
  readonly height: number;
  /** The best height that was proven; -1 for none. */
  readonly proven: number;
  /** How far the time of the newest cut is from now, by the clock that is furthest from it. */
  readonly ageMillis: number;
  readonly cutMillis: number;
};

/** `wasThere`: the verdict before. A node that starts has none, so it begins with false. */
export function isAtTip(wasThere: boolean, { height, proven, ageMillis, cutMillis }: TipFacts): boolean {
  if (proven - height > TOLERATED_CUTS || ageMillis > Math.max(OLD_MILLIS, OLD_CUTS * cutMillis)) return false;
  // Cut 0 is not signed: nobody has shown yet that there is a chain.
  if (height === 0) return false;
  return wasThere || ageMillis <= Math.max(ARRIVED_MILLIS, ARRIVED_CUTS * cutMillis);
}

export type TipDependencies = {
  head(): { readonly height: number; readonly timestampMillis: number };
  /** The best height that was proven; -1 for none. */
  proven(): number;
  readonly cutMillis: number;
  /**
   * The chain's clock, and the system's, which it follows late: after a sleep of the machine only the latter is right.
   * A cut from the future shows that a clock is wrong, and so that ages say nothing.
   */
  readonly clocks: readonly (() => number)[];
};

/** Looks at every cut and whenever it is asked. */
export class Tip {
  readonly #with: TipDependencies;
  #isThere = false;

  constructor(dependencies: TipDependencies) {
    this.#with = dependencies;
  }

  look(): boolean {
    const { head, proven, clocks, cutMillis } = this.#with;
    const { height, timestampMillis } = head();
    const ageMillis = Math.max(...clocks.map((now) => Math.abs(now() - timestampMillis)));
    this.#isThere = isAtTip(this.#isThere, { height, proven: proven(), ageMillis, cutMillis });
    return this.#isThere;
  }
}

/** For `GET /v1/node/sync`. `best`: -1 if nothing is known. */
export const heightsToShow = (best: number, height: number) => ({
  bestPeerHeight: best < 0 ? null : best,
  behindBy: Math.max(0, best - height),
});
