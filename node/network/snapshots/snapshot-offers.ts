/**
 * The snapshots that peers offer. Every peer is asked when it connects and from time to time; one that did not have its
 * offer is not asked for it again. Those that wait longest come first: since their peer came, or since they, or all that
 * offer them, were last tried in vain. A peer may offer the newest snapshot without ever sending it, and then another
 * invented one, and strangers may come without end: they come after those that wait. Peers that the operator named come
 * first, and those that this node chose before those that came to it.
 */
import { equalBytes } from '../../../protocol/bytes.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { Place } from '../sync/cut-proof.ts';
import { encodeSyncQuestion } from '../sync/sync-messages.ts';
import type { PeerInfo, PeerName } from '../thread/host-types.ts';
import { decodeOffers } from './snapshot-messages.ts';

const ASK_MILLIS = 10_000;
const MAX_DROPPED = 1_024;
const MAX_FAILED = 1_024;
/** Peers that came within this time are the same: the newest of their snapshots comes first. */
const TOGETHER_MILLIS = 60_000;
/** So much sooner a peer counts as having come, by its distance. */
const LEADS = [Number.POSITIVE_INFINITY, TOGETHER_MILLIS, 0] as const;

export type OfferDependencies = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  blame(error: unknown, peer: PeerName): void;
  changed(): void;
  readonly steady: SteadyClock;
};

export const keyOf = ({ height, cutId }: Place): string => `${height} ${nameOf(cutId)}`;

export class SnapshotOffers {
  readonly #with: OfferDependencies;
  /** By their keys. */
  readonly #offers = new Map<PeerName, Map<string, Place>>();
  /** 0: the operator named it, 1: this node chose it, 2: it came. */
  readonly #distances = new Map<PeerName, 0 | 1 | 2>();
  readonly #cameAt = new Map<PeerName, number>();
  readonly #dropped = new BoundedMap<string, true>(MAX_DROPPED);
  /** When a snapshot or a peer last failed to deliver. */
  readonly #failed = new BoundedMap<string, number>(MAX_FAILED);
  /** How often a snapshot was tried in vain. */
  readonly #tries = new BoundedMap<string, number>(MAX_FAILED);
  readonly #timer: NodeJS.Timeout;

  constructor(dependencies: OfferDependencies) {
    this.#with = dependencies;
    this.#timer = setInterval(() => {
      for (const peer of this.#offers.keys()) void this.#ask(peer);
    }, ASK_MILLIS);
  }

  joined(peer: PeerName, { direction, named }: Pick<PeerInfo, 'direction' | 'named'>): void {
    this.#offers.set(peer, new Map());
    this.#distances.set(peer, named ? 0 : direction === 'outbound' ? 1 : 2);
    const now = this.#with.steady();
    this.#cameAt.set(peer, now - (now % TOGETHER_MILLIS));
    void this.#ask(peer);
  }

  left(peer: PeerName): void {
    this.#offers.delete(peer);
    this.#distances.delete(peer);
    this.#cameAt.delete(peer);
  }

  async #ask(peer: PeerName): Promise<void> {
    const { ask, blame, changed } = this.#with;
    try {
      const offers = decodeOffers(await ask(peer, encodeSyncQuestion({ type: 'snapshots' })));
      if (!this.#offers.has(peer)) return;
      const keyed = offers.map((offer) => [keyOf(offer), offer] as const);
      this.#offers.set(peer, new Map(keyed.filter(([key]) => !this.#dropped.has(`${peer} ${key}`))));
      changed();
    } catch (error) {
      blame(error, peer);
    }
  }

  /** Those that are nearest first. */
  get peers(): readonly PeerName[] {
    return [...this.#distances].sort(([, a], [, b]) => a - b).map(([peer]) => peer);
  }

  /** Each once, those that wait longest first; of several, those of the nearest peers, and then newer ones. */
  all(): readonly Place[] {
    const all = new Map([...this.#offers.values()].flatMap((offers) => [...offers]));
    const ranked = [...all].map(([key, offer]) => {
      const holders = this.#holders(key);
      const distance = Math.min(...holders.map((peer) => this.#distances.get(peer) as number));
      return { offer, since: this.#since(key, holders), failedAt: this.#failedAt(key, holders), distance };
    });
    const sorted = ranked.sort(
      (a, b) =>
        Number(a.since > b.since) - Number(a.since < b.since) ||
        a.failedAt - b.failedAt ||
        a.distance - b.distance ||
        b.offer.height - a.offer.height,
    );
    return sorted.map(({ offer }) => offer);
  }

  #since(key: string, holders: readonly PeerName[]): number {
    const ofPeers = holders.map((peer) => this.#failed.get(peer) ?? this.#came(peer));
    return Math.max(this.#failed.get(key) ?? Number.NEGATIVE_INFINITY, Math.min(...ofPeers));
  }

  #came(peer: PeerName): number {
    return (this.#cameAt.get(peer) as number) - LEADS[this.#distances.get(peer) as 0 | 1 | 2];
  }

  /** Of the snapshot, or of every peer that offers it. */
  #failedAt(key: string, holders: readonly PeerName[]): number {
    return Math.max(this.#failed.get(key) ?? 0, Math.min(...holders.map((peer) => this.#failed.get(peer) ?? 0)));
  }

  /** How often it was tried in vain. */
  tries(offer: Place): number {
    return this.#tries.get(keyOf(offer)) ?? 0;
  }

  /** These peers did not deliver it. */
  failed(offer: Place, peers: Iterable<PeerName>): void {
    const now = this.#with.steady();
    this.#tries.set(keyOf(offer), this.tries(offer) + 1);
    for (const name of [keyOf(offer), ...peers]) this.#failed.set(name, now);
  }

  /** Those that are nearest first. */
  holders(offer: Place): readonly PeerName[] {
    const key = keyOf(offer);
    return this.peers.filter((peer) => this.#offers.get(peer)?.has(key));
  }

  /** The height at which a peer offers this cut. */
  claimed(peer: PeerName, cutId: Uint8Array): number | undefined {
    return this.#offers
      .get(peer)
      ?.values()
      .find((offer) => equalBytes(offer.cutId, cutId))?.height;
  }

  #holders(key: string): readonly PeerName[] {
    return [...this.#offers].filter(([, offers]) => offers.has(key)).map(([peer]) => peer);
  }

  /** The peer does not have it, or what it sent is not of it. */
  drop(peer: PeerName, offer: Place): void {
    const key = keyOf(offer);
    this.#dropped.set(`${peer} ${key}`, true);
    this.#offers.get(peer)?.delete(key);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
