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

export type PaceRank = 'good' | 'unknown' | 'poor';
const ORDER: Readonly<Record<PaceRank, number>> = { good: 0, unknown: 1, poor: 2 };

export class DeliveryPace {
  /** Bytes a second, and poor answers in a row: one alone may be a moment in which this node had no time. */
  readonly #paces = new Map<PeerName, { readonly pace: number; readonly poor: number; readonly at: number }>();
  /** How often peers were busy since they last sent a block. */
  readonly #busy = new Map<PeerName, number>();
  /** When they came or were last asked, as a number that grows. */
  readonly #turns = new Map<PeerName, number>();
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
    if (this.#turns.has(peer)) this.#turns.set(peer, ++this.#turn);
  }

  busy(peer: PeerName): void {
    if (this.#paces.has(peer)) this.#busy.set(peer, (this.#busy.get(peer) ?? 0) + 1);
  }

  /** An answer to a question that was put at `since`: the lengths of the blocks in it, of so many that were asked for. */
  measured(peer: PeerName, since: number, lengths: readonly number[], asked: number): void {
    const at = this.steady();
    if (lengths.length > 0) this.#busy.delete(peer);
    const seconds = Math.max(LEAST_MILLIS, at - since) / 1_000;
    const bytes = lengths.reduce((sum, length) => sum + Math.max(BLOCK_BYTES, length), 0);
    const pace = ((bytes / seconds) * lengths.length) / asked;
    // Nobody earned anything with a first answer that is poor.
    const before = this.#paces.get(peer) ?? { pace, poor: 1 };
    // Worse counts at once, so that it costs one turn; better has to be earned.
    this.#paces.set(peer, {
      pace: pace < before.pace ? pace : (before.pace + pace) / 2,
      poor: pace < POOR ? before.poor + 1 : 0,
      at,
    });
  }

  rank(peer: PeerName): PaceRank {
    const { poor, at } = this.#paces.get(peer) ?? { poor: 1, at: 0 };
    if (poor === 0) return (this.#busy.get(peer) ?? 0) < MAX_BUSY ? 'good' : 'unknown';
    return poor > 1 && this.steady() - at < POOR_MILLIS ? 'poor' : 'unknown';
  }

  /** The quickest first, then unknown ones, then poor ones, each in turn. */
  sorted(peers: readonly PeerName[]): PeerName[] {
    const ranked = peers.map((peer) => {
      const rank = this.rank(peer);
      const within = rank === 'good' ? -(this.#paces.get(peer)?.pace ?? 0) : (this.#turns.get(peer) ?? 0);
      return { peer, rank: ORDER[rank], within };
    });
    return ranked.sort((a, b) => a.rank - b.rank || a.within - b.within).map(({ peer }) => peer);
  }

  forget(peer: PeerName): void {
    this.#paces.delete(peer);
    this.#busy.delete(peer);
    this.#turns.delete(peer);
  }
}
