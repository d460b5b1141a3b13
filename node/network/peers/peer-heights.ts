/**
 * The heights of peers: claimed, and proven by a certificate. Claims decide which peer to ask; what was proven stays
 * proven when the peer leaves. A peer that failed to deliver rests while there are others: for twice as long after each
 * answer that brought nothing. Then it has its turn again, whoever else came meanwhile.
 */
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { DeliveryPace } from '../sync/delivery-pace.ts';
import { batchEnd } from '../sync/sync-messages.ts';
import type { PeerName } from '../thread/host-types.ts';

export type PeerHeight = {
  /** The highest it claimed. */
  claim: number;
  /** The lowest cut whose blocks it says it has. */
  bodiesFrom: number;
  /** The highest it proved; -1 for none. */
  proven: number;
  /** First height of a range that it did not deliver. */
  failedFrom: number | undefined;
  asked: number;
  /** Slow answers minus fast ones. */
  late: number;
  /** Answers that brought nothing, or less than it has, and until when others come first. */
  fruitless: number;
  restsUntil: number;
  /** Whether an answer of it brought all that it could. */
  hasBrought: boolean;
};

const MAX_LATE = 8;
const REST_MILLIS = 2_000;
/** 256 times as long: eight minutes. A peer without alternatives is asked all the same. */
const MAX_FRUITLESS = 9;

const NOBODY: ReadonlySet<PeerName> = new Set();

export class PeerHeights {
  readonly pace: DeliveryPace;
  readonly #steady: () => number;
  readonly #peers = new Map<PeerName, PeerHeight>();
  #asked = 0;
  #proven = -1;

  constructor(steady: () => number = steadyMillis) {
    this.#steady = steady;
    this.pace = new DeliveryPace(steady);
  }

  /** The best height that any peer proved since the start; -1 for none. */
  get proven(): number {
    return this.#proven;
  }

  get count(): number {
    return this.#peers.size;
  }

  joined(peer: PeerName, claim: number): void {
    this.#peers.set(peer, {
      claim,
      bodiesFrom: 0,
      proven: -1,
      failedFrom: undefined,
      // Who comes again and again is never before those that wait.
      asked: ++this.#asked,
      late: 0,
      fruitless: 0,
      restsUntil: 0,
      hasBrought: false,
    });
  }

  left(peer: PeerName): void {
    this.#peers.delete(peer);
    this.pace.forget(peer);
  }

  get(peer: PeerName): PeerHeight | undefined {
    return this.#peers.get(peer);
  }

  heard(peer: PeerName, height: number): void {
    const known = this.#peers.get(peer);
    if (known !== undefined) known.claim = Math.max(known.claim, height);
  }

  /** The peer reports its current height, which may be lower than before, and its lowest block. */
  says(peer: PeerName, height: number, bodiesFrom: number): void {
    const known = this.#peers.get(peer);
    if (known !== undefined) Object.assign(known, { claim: height, bodiesFrom });
  }

  claims(): ReadonlyMap<PeerName, number> {
    return new Map([...this.#peers].map(([peer, { claim }]) => [peer, claim]));
  }

  proved(peer: PeerName, height: number): void {
    const known = this.#peers.get(peer);
    if (known === undefined) return;
    known.proven = Math.max(known.proven, height);
    this.#proven = Math.max(this.#proven, height);
    known.claim = Math.max(known.claim, height);
    // Proving an old cut does not compensate for an undelivered range.
    if (known.failedFrom !== undefined && height >= known.failedFrom) known.failedFrom = undefined;
  }

  /** It answered a question soon, or did not. */
  answered(peer: PeerName, isLate: boolean): void {
    const known = this.#peers.get(peer);
    if (known !== undefined) known.late = Math.min(MAX_LATE, Math.max(0, known.late + (isLate ? 1 : -1)));
  }

  failed(peer: PeerName, from: number): void {
    const known = this.#peers.get(peer);
    if (known === undefined) return;
    known.failedFrom = from;
    this.brought(peer, false);
  }

  /** Whether its answer brought what the peer claims to have, as far as one answer can. */
  brought(peer: PeerName, isNew: boolean): void {
    const known = this.#peers.get(peer);
    if (known === undefined) return;
    known.hasBrought ||= isNew;
    known.fruitless = isNew ? Math.floor(known.fruitless / 2) : Math.min(MAX_FRUITLESS, known.fruitless + 1);
    known.restsUntil = isNew ? 0 : this.#steady() + REST_MILLIS * 2 ** (known.fruitless - 1);
  }

  /**
   * The peer to ask for cuts after `head`, of those that claim to have the cut `least` and do not rest. First those that brought
   * cuts before, those that claim a whole batch before others, then the ones that answer fast; strangers in turn, because
   * they can come again with a clean record.
   */
  next(head: number, except: ReadonlySet<PeerName> = NOBODY, least = head + 1): PeerName | undefined {
    return this.#oldest(
      (peer, { claim, bodiesFrom, restsUntil }) =>
        claim >= least && bodiesFrom <= head + 1 && restsUntil <= this.#steady() && !except.has(peer),
      ({ claim, fruitless, hasBrought, late, asked }) =>
        // What a stranger claims says nothing.
        hasBrought ? [claim >= batchEnd(head + 1) ? 0 : 1, fruitless, late, asked] : [2, 0, 0, asked],
    );
  }

  /** Any peer, to check for missed news. */
  any(): PeerName | undefined {
    return this.#oldest(
      () => true,
      ({ fruitless, restsUntil, asked }) => [restsUntil > this.#steady() ? fruitless : 0, asked],
    );
  }

  /** Whether a peer claims more, whatever it has delivered. */
  isClaimed(head: number): boolean {
    return [...this.#peers.values()].some(({ claim }) => claim > head);
  }

  /**
   * Whether all that claim more have pruned what comes after `head`. Claims cost nothing: while the head moves
   * (`stands` is false) or another peer has the newest blocks, those of one peer among others say nothing.
   */
  isPruned(head: number, stands: boolean): boolean {
    const lacks = ({ bodiesFrom }: PeerHeight) => bodiesFrom > head + 1;
    const all = [...this.#peers.values()];
    const ahead = all.filter(({ claim }) => claim > head);
    return ahead.length > 0 && ahead.every(lacks) && (stands || all.every(lacks));
  }

  /** Those that have the cuts of a batch with their blocks, as far as they say. */
  having(first: number, last: number): PeerName[] {
    const have = [...this.#peers].filter(([, { claim, bodiesFrom }]) => claim >= last && bodiesFrom <= first);
    return have.map(([peer]) => peer);
  }

  #oldest(
    may: (peer: PeerName, height: PeerHeight) => boolean,
    order: (height: PeerHeight) => readonly number[],
  ): PeerName | undefined {
    const all = [...this.#peers].filter(([peer, height]) => may(peer, height));
    const [found] = all.sort(([, a], [, b]) => {
      const other = order(b);
      return order(a).reduce((sign, value, i) => sign || value - (other[i] as number), 0);
    });
    if (found !== undefined) found[1].asked = ++this.#asked;
    return found?.[0];
  }

  /**
   * The best height to show: what was proven; and for a node that knows by the age of its own head that it is behind,
   * also what a peer claims that proved this head and has not failed to deliver since. -1 for none.
   */
  best(head: number, isAtTip: boolean): number {
    const delivering = [...this.#peers.values()].filter((peer) => peer.proven >= head && peer.failedFrom !== head + 1);
    return Math.max(this.#proven, ...(isAtTip ? [] : delivering.map(({ claim }) => claim)));
  }
}
