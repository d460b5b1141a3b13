/**
 * The heights of peers: claimed, and proven by a certificate. Claims cost nothing: they say who may have something, and
 * what was proven stays proven when the peer leaves. Whom to ask is decided by what peers did (ask-order.ts).
 */
import { type SteadyClock, steadyMillis } from '../../../runtime/clock/clock.ts';
import { AskOrder } from '../sync/ask-order.ts';
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
};

export class PeerHeights {
  /** Whom to ask, for each kind of question: what a peer did over one says nothing of the others. */
  readonly orders: Readonly<Record<'cuts' | 'headers' | 'blocks', AskOrder>>;
  readonly #peers = new Map<PeerName, PeerHeight>();
  #proven = -1;

  constructor(steady: SteadyClock = steadyMillis) {
    this.orders = { cuts: new AskOrder(steady), headers: new AskOrder(steady), blocks: new AskOrder(steady) };
  }

  /** The best height that any peer proved since the start; -1 for none. */
  get proven(): number {
    return this.#proven;
  }

  get count(): number {
    return this.#peers.size;
  }

  get names(): readonly PeerName[] {
    return [...this.#peers.keys()];
  }

  joined(peer: PeerName, claim: number): void {
    for (const order of Object.values(this.orders)) order.joined(peer);
    this.#peers.set(peer, { claim, bodiesFrom: 0, proven: -1, failedFrom: undefined });
  }

  left(peer: PeerName): void {
    for (const order of Object.values(this.orders)) order.left(peer);
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

  proved(peer: PeerName, height: number): void {
    const known = this.#peers.get(peer);
    if (known === undefined) return;
    known.proven = Math.max(known.proven, height);
    this.#proven = Math.max(this.#proven, height);
    known.claim = Math.max(known.claim, height);
    // Proving an old cut does not compensate for an undelivered range.
    if (known.failedFrom !== undefined && height >= known.failedFrom) known.failedFrom = undefined;
  }

  failed(peer: PeerName, from: number): void {
    const known = this.#peers.get(peer);
    if (known !== undefined) known.failedFrom = from;
  }

  /** Whether a peer says that it has the cuts between these with their blocks. */
  claims(peer: PeerName, first: number, last = first): boolean {
    const known = this.#peers.get(peer);
    return known !== undefined && known.claim >= last && known.bodiesFrom <= first;
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

  /**
   * The best height to show: what was proven; and for a node that knows by the age of its own head that it is behind,
   * also what a peer claims that proved this head and has not failed to deliver since. -1 for none.
   */
  best(head: number, isAtTip: boolean): number {
    const delivering = [...this.#peers.values()].filter((peer) => peer.proven >= head && peer.failedFrom !== head + 1);
    return Math.max(this.#proven, ...(isAtTip ? [] : delivering.map(({ claim }) => claim)));
  }
}
