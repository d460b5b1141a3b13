/**
 * The heights of peers: claimed, and proven by a certificate. Claims decide which peer to ask; what was proven stays
 * proven when the peer leaves. A peer that failed to deliver a range is not asked for it again while there are others.
 */
import type { PeerName } from './thread/host-types.ts';

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
};

const MAX_LATE = 8;

const NOBODY: ReadonlySet<PeerName> = new Set();

export class PeerHeights {
  readonly #peers = new Map<PeerName, PeerHeight>();
  #asked = 0;
  #proven = -1;

  /** The best height that any peer proved since the start; -1 for none. */
  get proven(): number {
    return this.#proven;
  }

  get count(): number {
    return this.#peers.size;
  }

  joined(peer: PeerName, claim: number): void {
    this.#peers.set(peer, { claim, bodiesFrom: 0, proven: -1, failedFrom: undefined, asked: 0, late: 0 });
  }

  left(peer: PeerName): void {
    this.#peers.delete(peer);
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
    if (known !== undefined) known.failedFrom = from;
  }

  /** All peers get another chance: none is left to ask. */
  forgive(): void {
    for (const known of this.#peers.values()) known.failedFrom = undefined;
  }

  /**
   * The peer to ask for cuts after `head`: of those that claim to have them and answer fast, the one asked longest ago.
   */
  next(head: number, except: ReadonlySet<PeerName> = NOBODY): PeerName | undefined {
    return this.#oldest(
      (peer, { claim, bodiesFrom, failedFrom }) =>
        claim > head && bodiesFrom <= head + 1 && failedFrom !== head + 1 && !except.has(peer),
      ({ late, asked }) => [late, asked],
    );
  }

  /** Any peer, to check for missed news. */
  any(): PeerName | undefined {
    return this.#oldest(
      () => true,
      ({ asked }) => [0, asked],
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
    order: (height: PeerHeight) => readonly [number, number],
  ): PeerName | undefined {
    const all = [...this.#peers].filter(([peer, height]) => may(peer, height));
    const [found] = all.sort(([, a], [, b]) => {
      const [x, y] = [order(a), order(b)];
      return x[0] - y[0] || x[1] - y[1];
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
