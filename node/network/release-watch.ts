/**
 * Whether peers run a newer release than this node (`update_announced`). Anybody can connect and claim a release, so
 * one stranger is not enough: it must come from a peer that this node chose, or from several strangers of different
 * networks.
 */
import { isNewer } from './hello.ts';
import { subnetOf } from './inbound-limits.ts';
import { ipOf } from './peer-address.ts';
import type { PeerInfo, PeerName } from './thread/host-types.ts';

const STRANGERS = 3;

export class ReleaseWatch {
  readonly #own: string;
  readonly #newer = new Map<PeerName, PeerInfo>();

  constructor(own: string) {
    this.#own = own;
  }

  joined(peer: PeerName, info: PeerInfo): void {
    if (isNewer(info.release, this.#own)) this.#newer.set(peer, info);
  }

  left(peer: PeerName): void {
    this.#newer.delete(peer);
  }

  isAnnounced(): boolean {
    const all = [...this.#newer.values()];
    if (all.some(({ direction }) => direction === 'outbound')) return true;
    return new Set(all.map(({ address }) => subnetOf(ipOf(address) ?? ''))).size >= STRANGERS;
  }
}
