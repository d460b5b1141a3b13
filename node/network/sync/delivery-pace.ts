/**
 * What peers delivered per second in their last answers, by which the next question for blocks finds its peer. It is an
 * order and no verdict: a peer with a poor pace is asked after all others for a while, and loses no points. Then it has
 * its turn again, whoever else came meanwhile.
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

export type PaceRank = 'good' | 'unknown' | 'poor';
const ORDER: Readonly<Record<PaceRank, number>> = { good: 0, unknown: 1, poor: 2 };

export class DeliveryPace {
  /** Bytes a second, and poor answers in a row: one alone may be a moment in which this node had no time. */
  readonly #paces = new Map<PeerName, { readonly pace: number; readonly poor: number; readonly at: number }>();
  readonly steady: () => number;

  constructor(steady: () => number = steadyMillis) {
    this.steady = steady;
  }

  /** An answer to a question that was put at `since`: the lengths of the blocks in it, of so many that were asked for. */
  measured(peer: PeerName, since: number, lengths: readonly number[], asked: number): void {
    const at = this.steady();
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
    if (poor === 0) return 'good';
    return poor > 1 && this.steady() - at < POOR_MILLIS ? 'poor' : 'unknown';
  }

  /** The quickest first, unknown ones before poor ones; otherwise as they come. */
  sorted(peers: readonly PeerName[]): PeerName[] {
    const pace = (peer: PeerName) => this.#paces.get(peer)?.pace ?? 0;
    return [...peers].sort((a, b) => ORDER[this.rank(a)] - ORDER[this.rank(b)] || pace(b) - pace(a));
  }

  forget(peer: PeerName): void {
    this.#paces.delete(peer);
  }
}
