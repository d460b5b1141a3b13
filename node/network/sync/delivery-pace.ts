/**
 * What peers delivered per second in their last answers, by which the next question for blocks finds its peer. It is an
 * order and no verdict: a peer with a poor pace is asked after all others for a while, and loses no points. Then it has
 * its turn again, whoever else came meanwhile. The pace of one that is always busy does not count: it would keep all
 * others away.
 */
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import type { PeerName } from '../thread/host-types.ts';

/** A block counts at least this much: the time of a small one is that of the question. */
const BLOCK_BYTES = 16 * 1_024;
/** Bytes a second: one small block, where one was asked for. */
const POOR = BLOCK_BYTES;
/** How long a poor answer counts. */
const POOR_MILLIS = 30_000;
/** An answer that is at once here. */
const LEAST_MILLIS = 10;

/** One that was busy this often, and sent nothing meanwhile, is not known to be quick any more. */
const MAX_BUSY = 3;

/** From here on who delivered nothing begins anew. */
const LEAST_PACE = POOR / 16;

/** Who takes so long to say that it is busy is slow. */
const BUSY_MILLIS = 1_000;

/** One without a good pace is tried so often, beside others. */
const TRY_MILLIS = 2_000;

/** Who says within this time that it is busy keeps its turn, so often in a row. */
export const SOON_MILLIS = 250;
export const MAX_KEPT = 3;

export type PaceRank = 'good' | 'unknown' | 'poor';
const ORDER: Readonly<Record<PaceRank, number>> = { good: 0, unknown: 1, poor: 2 };

export class DeliveryPace {
  /** Bytes a second, and poor answers in a row: one alone may be a moment in which this node had no time. */
  readonly #paces = new Map<PeerName, { readonly pace: number; readonly poor: number; readonly at: number }>();
  /** Those that ever sent a block. */
  readonly #senders = new Set<PeerName>();
  /** Whether the last one that was asked, of those without a good pace, ever sent one. */
  #wasSender = false;
  /** How often peers were busy since they last sent a block. */
  readonly #busy = new Map<PeerName, number>();
  /** When they came or were last asked, as a number that grows. */
  readonly #turns = new Map<PeerName, number>();
  /** Their turns before the last question, and how often in a row they kept them. */
  readonly #before = new Map<PeerName, number>();
  readonly #kept = new Map<PeerName, number>();
  #triedAt = Number.NEGATIVE_INFINITY;
  #turn = 0;
  readonly steady: () => number;

  constructor(steady: () => number = steadyMillis) {
    this.steady = steady;
  }

  /** Who comes again and again is never before those that wait. */
  joined(peer: PeerName): void {
    this.#turns.set(peer, ++this.#turn);
  }

  asked(peer: PeerName): void {
    const before = this.#turns.get(peer);
    if (before !== undefined) {
      this.#before.set(peer, before);
      this.#turns.set(peer, ++this.#turn);
    }
    if (this.rank(peer) !== 'good') this.#wasSender = this.#senders.has(peer);
  }

  /** It has no time, and one that is honest says so soon: who takes its time for it sent nothing in that time. */
  busy(peer: PeerName, since: number, asked: number): void {
    if (this.#paces.has(peer)) this.#busy.set(peer, (this.#busy.get(peer) ?? 0) + 1);
    const millis = this.steady() - since;
    if (millis >= BUSY_MILLIS) this.measured(peer, since, [], asked);
    this.#keepTurn(peer, millis);
  }

  /** It cost no time, and all others may come before it otherwise. */
  #keepTurn(peer: PeerName, millis: number): void {
    const [before, kept] = [this.#before.get(peer), this.#kept.get(peer) ?? 0];
    const isKept = before !== undefined && millis < SOON_MILLIS && kept < MAX_KEPT;
    if (isKept) this.#turns.set(peer, before);
    this.#kept.set(peer, isKept ? kept + 1 : 0);
  }

  /** Whether one without a good pace is due: where all come after the good ones, one that is better would never show it. */
  isTryDue(): boolean {
    return this.steady() - this.#triedAt >= TRY_MILLIS;
  }

  tried(): void {
    this.#triedAt = this.steady();
  }

  /** An answer to a question that was put at `since`: the lengths of the blocks in it, of so many that were asked for. */
  measured(peer: PeerName, since: number, lengths: readonly number[], asked: number): void {
    const at = this.steady();
    if (lengths.length > 0) {
      this.#busy.delete(peer);
      this.#senders.add(peer);
      this.#kept.delete(peer);
    }
    const seconds = Math.max(LEAST_MILLIS, at - since) / 1_000;
    const bytes = lengths.reduce((sum, length) => sum + Math.max(BLOCK_BYTES, length), 0);
    const pace = ((bytes / seconds) * lengths.length) / asked;
    // Nobody earned anything with a first answer that is poor.
    const before = this.#paces.get(peer) ?? { pace: POOR, poor: 1 };
    // Worse counts at once, so that it costs one turn; better has to be earned, also by those that come under new names.
    this.#paces.set(peer, {
      pace: Math.min(pace, 2 * Math.max(before.pace, LEAST_PACE)),
      poor: pace < POOR ? before.poor + 1 : 0,
      at,
    });
  }

  rank(peer: PeerName): PaceRank {
    const { poor, at } = this.#paces.get(peer) ?? { poor: 1, at: 0 };
    if (poor === 0) return (this.#busy.get(peer) ?? 0) < MAX_BUSY ? 'good' : 'unknown';
    return poor > 1 && this.steady() - at < POOR_MILLIS ? 'poor' : 'unknown';
  }

  /**
   * The quickest first. Then in turn, unknown ones before poor ones, one that sent something before and one that never
   * did: neither a crowd of strangers nor one of drippers stands before a peer of the other kind.
   */
  sorted(peers: readonly PeerName[]): PeerName[] {
    const good = peers.filter((peer) => this.rank(peer) === 'good');
    const pace = (peer: PeerName) => this.#paces.get(peer)?.pace ?? 0;
    const others = peers.filter((peer) => this.rank(peer) !== 'good');
    const senders = this.#inTurn(others.filter((peer) => this.#senders.has(peer)));
    const strangers = this.#inTurn(others.filter((peer) => !this.#senders.has(peer)));
    const [first, second] = this.#wasSender ? [strangers, senders] : [senders, strangers];
    const length = Math.max(first.length, second.length);
    const mixed = Array.from({ length }, (_, i) => [...first.slice(i, i + 1), ...second.slice(i, i + 1)]).flat();
    return [...good.sort((a, b) => pace(b) - pace(a)), ...mixed];
  }

  #inTurn(peers: readonly PeerName[]): PeerName[] {
    const turn = (peer: PeerName) => this.#turns.get(peer) ?? 0;
    return [...peers].sort((a, b) => ORDER[this.rank(a)] - ORDER[this.rank(b)] || turn(a) - turn(b));
  }

  forget(peer: PeerName): void {
    this.#paces.delete(peer);
    this.#busy.delete(peer);
    this.#senders.delete(peer);
    this.#before.delete(peer);
    this.#kept.delete(peer);
    this.#turns.delete(peer);
  }
}
