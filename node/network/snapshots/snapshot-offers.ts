/**
 * The snapshots that peers offer. Every peer is asked when it connects and from time to time; one that did not have its
 * offer is not asked for it again. Undelivered snapshots, and other offers of the same peers, come after all other
 * offers for a while: a peer may offer the newest snapshot without ever sending it, and then another invented one. Peers
 * that this node chose come before those that came to it, of which a stranger can send any number.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { Place } from '../sync/cut-proof.ts';
import { encodeSyncQuestion } from '../sync/sync-messages.ts';
import type { PeerInfo, PeerName } from '../thread/host-types.ts';
import { decodeOffers } from './snapshot-messages.ts';

const ASK_MILLIS = 10_000;
const MAX_DROPPED = 1_024;
const MAX_FAILED = 1_024;
const LAST_MILLIS = 10 * 60_000;

export type OfferDependencies = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  blame(error: unknown, peer: PeerName): void;
  changed(): void;
  steady(): number;
};

export const keyOf = ({ height, cutId }: Place): string => `${height} ${nameOf(cutId)}`;

export class SnapshotOffers {
  readonly #with: OfferDependencies;
  readonly #offers = new Map<PeerName, readonly Place[]>();
  readonly #chosen = new Set<PeerName>();
  readonly #dropped = new BoundedMap<string, true>(MAX_DROPPED);
  /** When a snapshot or a peer last failed to deliver. */
  readonly #failed = new BoundedMap<string, number>(MAX_FAILED);
  readonly #timer: NodeJS.Timeout;

  constructor(dependencies: OfferDependencies) {
    this.#with = dependencies;
    this.#timer = setInterval(() => {
      for (const peer of this.#offers.keys()) void this.#ask(peer);
    }, ASK_MILLIS);
  }

  joined(peer: PeerName, { direction }: Pick<PeerInfo, 'direction'>): void {
    this.#offers.set(peer, []);
    if (direction === 'outbound') this.#chosen.add(peer);
    void this.#ask(peer);
  }

  left(peer: PeerName): void {
    this.#offers.delete(peer);
    this.#chosen.delete(peer);
  }

  async #ask(peer: PeerName): Promise<void> {
    const { ask, blame, changed } = this.#with;
    try {
      const offers = decodeOffers(await ask(peer, encodeSyncQuestion({ type: 'snapshots' })));
      if (!this.#offers.has(peer)) return;
      this.#offers.set(
        peer,
        offers.filter((offer) => !this.#dropped.has(`${peer} ${keyOf(offer)}`)),
      );
      changed();
    } catch (error) {
      blame(error, peer);
    }
  }

  /** Those that this node chose first. */
  get peers(): readonly PeerName[] {
    return [...this.#chosen, ...[...this.#offers.keys()].filter((peer) => !this.#chosen.has(peer))];
  }

  /** Each once, those of chosen peers and newer ones first; then undelivered ones, the one tried longest ago first. */
  all(): readonly Place[] {
    const all = new Map([...this.#offers.values()].flat().map((offer) => [keyOf(offer), offer]));
    const ranked = [...all.values()].map((offer) => ({
      offer,
      failedAt: this.#failedAt(offer),
      distance: this.holders(offer).some((peer) => this.#chosen.has(peer)) ? 0 : 1,
    }));
    const sorted = ranked.sort(
      (a, b) => a.failedAt - b.failedAt || a.distance - b.distance || b.offer.height - a.offer.height,
    );
    return sorted.map(({ offer }) => offer);
  }

  /** Of the snapshot, or of every peer that offers it. */
  #failedAt(offer: Place): number {
    const ofPeers = this.holders(offer).map((peer) => this.#failed.get(peer) ?? 0);
    const at = Math.max(this.#failed.get(keyOf(offer)) ?? 0, Math.min(...ofPeers));
    return this.#with.steady() - at < LAST_MILLIS ? at : 0;
  }

  /** These peers did not deliver it. */
  failed(offer: Place, peers: Iterable<PeerName>): void {
    const now = this.#with.steady();
    for (const name of [keyOf(offer), ...peers]) this.#failed.set(name, now);
  }

  holders(offer: Place): readonly PeerName[] {
    const key = keyOf(offer);
    return [...this.#offers].filter(([, offers]) => offers.some((other) => keyOf(other) === key)).map(([peer]) => peer);
  }

  /** The peer does not have it, or what it sent is not of it. */
  drop(peer: PeerName, offer: Place): void {
    const key = keyOf(offer);
    this.#dropped.set(`${peer} ${key}`, true);
    const offers = this.#offers.get(peer);
    if (offers !== undefined)
      this.#offers.set(
        peer,
        offers.filter((other) => keyOf(other) !== key),
      );
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
