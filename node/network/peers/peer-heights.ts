/**
 * The heights of peers: claimed, and proven by a certificate. Claims decide which peer may be asked; what was proven
 * stays proven when the peer leaves. A peer that failed to deliver rests while there are others: for twice as long after
 * each answer that brought nothing, and never longer than it takes to ask all others. Then it has its turn again,
 * whoever else came meanwhile: strangers may come without end, and one that was busy may be all there is.
 */
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { DeliveryPace, MAX_KEPT, SOON_MILLIS } from '../sync/delivery-pace.ts';
import { HASTE_MILLIS } from '../sync/hurried-ask.ts';
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
  /** The same before the last question, when that was, and how often in a row it kept its turn. */
  before: number;
  askedAt: number;
  kept: number;
  /** When it last said what it has, or was asked for that. */
  heardAt: number;
  /** Questions that it did not answer soon, or had no time for, minus others. */
  late: number;
  /** How long its answers took lately. */
  millis: number;
  /** Answers that brought nothing, or less than it has, and until when others come first. */
  fruitless: number;
  restsUntil: number;
  /** Whether an answer of it brought all that it could. */
  hasBrought: boolean;
};

const MAX_LATE = 8;
const REST_MILLIS = 2_000;
/** Eight times as long. A peer without alternatives is asked all the same. */
const MAX_FRUITLESS = 4;
/** So many answers in a row that brought less than the peer has: it is as good as a stranger. */
const LITTLE = 2;

/** What a peer said it has is true for so long. */
const HEARD_MILLIS = 4_000;

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
    this.pace.joined(peer);
    this.#peers.set(peer, {
      claim,
      bodiesFrom: 0,
      proven: -1,
      failedFrom: undefined,
      // Who comes again and again is never before those that wait.
      asked: ++this.#asked,
      before: this.#asked,
      askedAt: this.#steady(),
      kept: 0,
      heardAt: this.#steady(),
      late: 0,
      millis: 0,
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
    if (known !== undefined) Object.assign(known, { claim: height, bodiesFrom, heardAt: this.#steady() });
  }

  /** At most so many of those that did not say lately what they have, who waits longest first. They are asked now. */
  unheard(most: number, except: ReadonlySet<PeerName>): PeerName[] {
    const now = this.#steady();
    const silent = [...this.#peers].filter(([peer, { heardAt }]) => now - heardAt >= HEARD_MILLIS && !except.has(peer));
    const some = silent.sort(([, a], [, b]) => a.heardAt - b.heardAt).slice(0, most);
    for (const [, known] of some) known.heardAt = now;
    return some.map(([peer]) => peer);
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

  /** Its answer took so long. */
  answered(peer: PeerName, millis: number): void {
    const known = this.#peers.get(peer);
    if (known === undefined) return;
    if (millis < HASTE_MILLIS) known.late = Math.max(0, known.late - 1);
    known.millis = (known.millis + millis) / 2;
  }

  /** It does not answer soon. */
  late(peer: PeerName): void {
    const known = this.#peers.get(peer);
    if (known !== undefined) known.late = Math.min(MAX_LATE, known.late + 1);
  }

  /** It has no time now: others are asked meanwhile, and before it until it answers again. */
  busy(peer: PeerName): void {
    const known = this.#peers.get(peer);
    this.late(peer);
    if (known === undefined) return;
    known.restsUntil = this.#steady() + REST_MILLIS;
    const isKept = this.#steady() - known.askedAt < SOON_MILLIS && known.kept < MAX_KEPT;
    if (isKept) known.asked = known.before;
    known.kept = isKept ? known.kept + 1 : 0;
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
    if (isNew) known.kept = 0;
    known.fruitless = isNew ? Math.floor(known.fruitless / 2) : Math.min(MAX_FRUITLESS, known.fruitless + 1);
    known.restsUntil = isNew ? 0 : this.#steady() + REST_MILLIS * 2 ** (known.fruitless - 1);
  }

  /**
   * The peer to ask for cuts after `head`, of those that claim to have the cut `least` and do not rest. First those that
   * brought cuts, headers or blocks before: what they did decides their order, and what they claim only among equals. Strangers come
   * in turn, because they can come again with a clean record. `inTurn`: all come in turn, because what a peer did says
   * nothing of what it will do.
   */
  next(head: number, except: ReadonlySet<PeerName> = NOBODY, least = head + 1, inTurn = false): PeerName | undefined {
    return this.#oldest(
      (peer, { claim, bodiesFrom, restsUntil }) =>
        claim >= least && bodiesFrom <= head + 1 && restsUntil <= this.#steady() && !except.has(peer),
      ({ claim, fruitless, hasBrought, late, millis, asked }, peer) => {
        if (inTurn) return [asked];
        if (fruitless >= LITTLE || (!hasBrought && this.pace.rank(peer) !== 'good')) return [1, 0, 0, 0, asked];
        // Up to this long they are equally soon; up to twice as long is the next class, and so on.
        const slow = Math.ceil(Math.log2(Math.max(SOON_MILLIS, millis) / SOON_MILLIS));
        return [0, fruitless + late, slow, claim >= batchEnd(head + 1) ? 0 : 1, asked];
      },
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
    order: (height: PeerHeight, peer: PeerName) => readonly number[],
  ): PeerName | undefined {
    const all = [...this.#peers].filter(([peer, height]) => may(peer, height));
    const [found] = all.sort(([first, a], [second, b]) => {
      const other = order(b, second);
      return order(a, first).reduce((sign, value, i) => sign || value - (other[i] as number), 0);
    });
    if (found !== undefined) {
      const [, known] = found;
      Object.assign(known, { before: known.asked, askedAt: this.#steady(), asked: ++this.#asked });
    }
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
