/**
 * Whom to ask next, for one kind of question. Two orders, and no names besides: in turn, where all have the same share of
 * time; and by what peers brought for the time for which they held questions, both fading with time. Silence, `busy` and
 * answers that bring little cost time and bring nothing, so the time that a peer can waste is bounded by what it brought,
 * and nobody else has to be remembered as good or bad. New names have brought nothing and wait for their turn.
 */
import { type SteadyClock, steadyMillis } from '../../../runtime/clock/clock.ts';
import type { PeerName } from '../thread/host-types.ts';

/** What was brought, and the time for it, count half as much after so long. */
const HALF_LIFE_MILLIS = 60_000;
/** A question holds at least this long: who answers sooner is not better for it. */
export const LEAST_MILLIS = 250;
/** A question in turn holds up the others so long at most. */
export const TURN_MILLIS = 500;
/** Who brought nothing is not asked again so soon, nor is anybody in turn. */
const REST_MILLIS = 1_000;
/** Who brings less than one answer in so much time has brought nothing. */
const LEAST_GAIN_MILLIS = 60_000;

/** One block of 64. */
const LEAST_PORTION = 1 / 64;

/** A question that a peer holds. */
export type Held = {
  readonly peer: PeerName;
  readonly record: PeerRecord;
  readonly since: number;
  readonly isInTurn: boolean;
  /** When its answer came. It may have to be proven then. */
  until: number | undefined;
  isOver: boolean;
};

type PeerRecord = {
  /** Of the time of turns: when its next one begins. */
  turn: number;
  /** Since when it waits for that. */
  since: number;
  askedAt: number;
  restsUntil: number;
  readonly held: Set<Held>;
  /** How much of a whole question it is asked for at once. */
  portion: number;
  won: number;
  millis: number;
  /** When these two were last counted. */
  at: number;
};

export class AskOrder {
  readonly steady: SteadyClock;
  readonly #records = new Map<PeerName, PeerRecord>();
  /** When the last turn began, in the time of turns. */
  #turn = 0;

  constructor(steady: SteadyClock = steadyMillis) {
    this.steady = steady;
  }

  /** It comes after all that are here: coming again and again is worth nothing. */
  joined(peer: PeerName): void {
    this.#of(peer);
  }

  left(peer: PeerName): void {
    this.#records.delete(peer);
  }

  #of(peer: PeerName): PeerRecord {
    const known = this.#records.get(peer);
    if (known !== undefined) return known;
    const at = this.steady();
    const made = {
      turn: this.#turn + TURN_MILLIS,
      since: at,
      askedAt: Number.NEGATIVE_INFINITY,
      restsUntil: 0,
      held: new Set<Held>(),
      portion: 1,
      won: 0,
      millis: 0,
      at,
    };
    this.#records.set(peer, made);
    return made;
  }

  asked(peer: PeerName, isInTurn = false): Held {
    const [record, since] = [this.#of(peer), this.steady()];
    record.askedAt = since;
    if (isInTurn) {
      this.#turn = Math.max(this.#turn, record.turn);
      Object.assign(record, { turn: this.#turn + TURN_MILLIS, since });
    }
    const held: Held = { peer, record, since, isInTurn, until: undefined, isOver: false };
    record.held.add(held);
    return held;
  }

  answered(held: Held): void {
    held.until = this.steady();
  }

  /** What the answer brought: 0 for nothing; undefined where it could not be judged then, but can be now. */
  over(held: Held, won: number | undefined): void {
    const { record, since } = held;
    record.held.delete(held);
    held.isOver = true;
    if (won === undefined) return;
    const now = this.steady();
    fade(record, now);
    const millis = Math.max(LEAST_MILLIS, (won > 0 ? (held.until ?? now) : now) - since);
    record.won += won;
    record.millis += millis;
    // Who was busy, and said so soon, has another try before others have their next turn.
    if (held.isInTurn && won === 0) record.turn -= Math.max(0, TURN_MILLIS - millis);
    record.restsUntil = won > 0 ? 0 : now + REST_MILLIS;
  }

  /** How much of a whole question this peer is asked for at once: who has a slow line, or many others at it, would answer no whole one in time. */
  portionOf(peer: PeerName): number {
    return this.#of(peer).portion;
  }

  /** What became of a question for this part of a whole one. `soon`: four times as much would have come in time. */
  took(peer: PeerName, asked: number, how: 'late' | 'soon' | 'anew'): void {
    const record = this.#records.get(peer);
    if (record === undefined) return;
    if (how === 'anew') record.portion = 1;
    else if (how === 'late') record.portion = Math.min(record.portion, Math.max(LEAST_PORTION, asked / 4));
    else record.portion = Math.max(record.portion, Math.min(1, asked * 4));
  }

  askedAt(peer: PeerName): number {
    return this.#of(peer).askedAt;
  }

  /** Who brought most for its time; of equals, up to twice as much, who was asked longest ago. Undefined where none brought anything. */
  best(peers: readonly PeerName[], places = 1): PeerName | undefined {
    let found: { readonly peer: PeerName; readonly rank: number; readonly askedAt: number } | undefined;
    for (const peer of peers) {
      const record = this.#of(peer);
      if (!this.#isFree(record, places)) continue;
      const rank = this.#rank(record);
      if (
        rank === undefined ||
        (found && (found.rank > rank || (found.rank === rank && found.askedAt <= record.askedAt)))
      )
        continue;
      found = { peer, rank, askedAt: record.askedAt };
    }
    return found?.peer;
  }

  /** Whether it brings at least a quarter of what another brings, or an eighth. */
  isAsGood(peer: PeerName, other: PeerName): boolean {
    return (this.#rank(this.#of(peer)) ?? Number.NEGATIVE_INFINITY) + 2 >= (this.#rank(this.#of(other)) ?? 0);
  }

  /** Whose turn it is, whatever it did. */
  next(peers: readonly PeerName[], places = 1): PeerName | undefined {
    const due = this.steady() - REST_MILLIS;
    let found: { readonly peer: PeerName; readonly turn: number; readonly since: number } | undefined;
    for (const peer of peers) {
      const record = this.#of(peer);
      if (!this.#isFree(record, places) || record.askedAt > due) continue;
      const { turn, since } = record;
      if (found === undefined || turn < found.turn || (turn === found.turn && since < found.since))
        found = { peer, turn, since };
    }
    return found?.peer;
  }

  /** Of whom less is asked at once, fewer questions are: they would share its line. */
  #isFree({ held, restsUntil, portion }: PeerRecord, places: number): boolean {
    return held.size < Math.max(1, portion * places) && restsUntil <= this.steady();
  }

  #rank(record: PeerRecord): number | undefined {
    const now = this.steady();
    fade(record, now);
    let millis = LEAST_MILLIS + record.millis;
    for (const { since } of record.held) millis += now - since;
    return record.won * LEAST_GAIN_MILLIS > millis ? Math.floor(Math.log2(record.won / millis)) : undefined;
  }
}

function fade(record: PeerRecord, now: number): void {
  const left = 2 ** ((record.at - now) / HALF_LIFE_MILLIS);
  record.won *= left;
  record.millis *= left;
  record.at = now;
}
