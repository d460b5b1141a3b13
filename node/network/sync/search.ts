/**
 * Asks until what is missing came, by one rule for cuts, headers and blocks (ask-order.ts). The best peer is asked
 * first; one that brings nothing makes room at once, one that takes longer than HASTE_MILLIS for the next best, and its
 * late answer counts all the same. From then on all are asked in turn beside it, whatever they did or claim: the next
 * one as soon as an answer came, or after TURN_MILLIS.
 *
 * So of N peers each is asked about once in N × TURN_MILLIS, whatever the others do: an honest one that answers is
 * found. And the best is asked at once: who comes before an honest one brought more for its time, so all of them
 * together waste no more time than the honest one would have needed for what they brought.
 */
import type { PeerName } from '../thread/host-types.ts';
import { type AskOrder, type Held, LEAST_MILLIS, TURN_MILLIS } from './ask-order.ts';

export const HASTE_MILLIS = 1_500;

export type SearchDependencies = {
  readonly order: AskOrder;
  /** Questions that one peer may hold; 1 if it is not said. */
  readonly places?: number;
  /** Who may be asked. `isLate`: it is missing for long. */
  peers(isLate: boolean): readonly PeerName[];
  /** Of these, who is asked before all others as long as nothing is late. */
  prefers?(peer: PeerName): boolean;
  /** Since when something is missing. */
  missingSince(): number | undefined;
  /** Whether the best need not be asked now. */
  isServed?(): boolean;
  /** What the answer brought, above 0 if anything; undefined where only now it could be judged. `answered`: it came, and has to be proven, which may take others' answers. */
  ask(peer: PeerName, answered: () => void): Promise<number | undefined>;
  /** This peer did not answer, or its answer is an error. */
  failed(peer: PeerName, error: unknown): void;
  /** Nobody can be asked now, and nothing is under way. */
  stuck?(): void;
};

export class Search {
  readonly #with: SearchDependencies;
  #timer: NodeJS.Timeout | undefined;
  readonly #asking = new Set<PeerName>();
  /** What the best holds: nobody else is asked out of turn for a while. */
  #first: Held | undefined;
  /** Of whose turn it is. */
  #inTurn: Held | undefined;
  #isOver = false;

  constructor(dependencies: SearchDependencies) {
    this.#with = dependencies;
  }

  start(): void {
    this.#timer = setInterval(() => this.#tick(), LEAST_MILLIS);
    this.look();
  }

  close(): void {
    this.#isOver = true;
    clearInterval(this.#timer);
  }

  /** Something may be missing, or somebody may have it. */
  look(): void {
    const { order, places, prefers, missingSince, isServed, stuck } = this.#with;
    if (this.#isOver || missingSince() === undefined || isServed?.()) return;
    if (this.#isHeld(this.#first, HASTE_MILLIS)) return;
    const all = this.#peers(this.#isLate());
    const said = prefers === undefined || this.#isLate() ? [] : all.filter(prefers);
    const preferred = order.best(said, places) ?? order.next(said, places);
    const peer = preferred ?? order.best(all, places) ?? (this.#isLate() ? undefined : order.next(all, places));
    if (peer !== undefined) void this.#put(peer, true);
    else if (this.#asking.size === 0) stuck?.();
  }

  #tick(): void {
    if (this.#isLate() && !this.#isHeld(this.#inTurn, TURN_MILLIS)) this.#askInTurn();
    this.look();
  }

  /** Whose turn it is; where the best need not be asked, first each of them once: it may have more than anybody claims. */
  #askInTurn(): void {
    const { order, places, isServed, missingSince } = this.#with;
    const all = this.#peers(true);
    const since = isServed?.() ? (missingSince() ?? 0) : 0;
    const peer =
      order.best(
        all.filter((one) => order.askedAt(one) < since),
        places,
      ) ?? order.next(all, places);
    if (peer !== undefined) void this.#put(peer, false);
  }

  #isHeld(held: Held | undefined, millis: number): boolean {
    return held?.isOver === false && this.#with.order.steady() - held.since < millis;
  }

  #isLate(): boolean {
    const since = this.#with.missingSince();
    return since !== undefined && this.#with.order.steady() - since >= HASTE_MILLIS;
  }

  #peers(isLate: boolean): readonly PeerName[] {
    return this.#with.peers(isLate).filter((peer) => !this.#asking.has(peer));
  }

  async #put(peer: PeerName, isBest: boolean): Promise<void> {
    const { order, ask, failed } = this.#with;
    const held = order.asked(peer, !isBest);
    if (isBest) this.#first = held;
    else this.#inTurn = held;
    this.#asking.add(peer);
    let won: number | undefined = 0;
    try {
      won = await ask(peer, () => order.answered(held));
    } catch (error) {
      failed(peer, error);
    }
    this.#asking.delete(peer);
    order.over(held, won);
    this.look();
  }
}
