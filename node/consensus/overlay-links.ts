/** The connections of a node of the overlay, by the names that it gave them. */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { clientKey } from '../../runtime/client-address.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { nameOf } from '../ledger/registration.ts';
import type { Peer } from './effects.ts';
import type { Place, Standing } from './inbound-places.ts';
import type { ProvenLink } from './relaying.ts';
import type { Claim, TcpLink } from './tcp-link.ts';
import type { Companion } from './transport.ts';

export type Link = {
  readonly link: TcpLink;
  readonly address: string;
  readonly isInbound: boolean;
  /** Where it was dialled; undefined for one that came, and for one through a relay. */
  readonly at?: ListenAddress | undefined;
  isReady: boolean;
  standing: Standing;
  /** Of a key that is not, or not yet, known to be a member's. */
  claim?: Claim | undefined;
  member?: string | undefined;
  /** Proven. */
  key?: Bytes | undefined;
  /** This side has not said who it is, for want of time. */
  isWithheld?: boolean;
};

/** What the address of a validator begins with that is reached through a relay; both identifiers follow. */
export const RELAYED = 'relayed ';

/** What limits count by: an address, the network of one customer, or a validator behind a relay. */
export const placeKey = (address: string): string => (address.startsWith(RELAYED) ? address : clientKey(address));

export class OverlayLinks extends Map<Peer, Link> {
  ready(): Peer[] {
    return [...this].filter(([, { isReady }]) => isReady).map(([peer]) => peer);
  }

  known(): Peer[] {
    return [...this]
      .filter(([, { isReady, isInbound, standing }]) => isReady && (!isInbound || standing !== 'stranger'))
      .map(([peer]) => peer);
  }

  company(): Companion[] {
    const proven = new Map<string, { key: Bytes; peers: Peer[] }>();
    const unproven: Companion[] = [];
    for (const peer of this.known()) {
      const { key, isInbound } = this.get(peer) as Link;
      if (key !== undefined) {
        const found = proven.get(nameOf(key));
        if (found === undefined) proven.set(nameOf(key), { key, peers: [peer] });
        else found.peers.push(peer);
      }
      // Who comes from an address that the operator named may come as often as it likes. Dialled is each once.
      else if (!isInbound) unproven.push({ key, peers: [peer] });
    }
    return [...proven.values(), ...unproven];
  }

  /** Whether somebody is connected that proved this key, and not through a relay: one that gets a route is dialled there. */
  isConnected(key: Bytes): boolean {
    for (const { isReady, key: proven, address } of this.values())
      if (isReady && proven !== undefined && !address.startsWith(RELAYED) && equalBytes(proven, key)) return true;
    return false;
  }

  /** Undefined where its other end proved nothing. */
  provenOf(peer: Peer, isMember: (key: Bytes) => boolean): ProvenLink | undefined {
    const { isReady, key, at } = this.get(peer) ?? {};
    return isReady === true && key !== undefined ? { peer, key, at, isMember: isMember(key) } : undefined;
  }

  /** Of those that connected to this node, but one. */
  places(isNear: (address: string) => boolean, but?: Peer): Place[] {
    const places: Place[] = [];
    for (const [peer, { isInbound, address, standing, member }] of this)
      if (isInbound && peer !== but)
        places.push({ peer, address: placeKey(address), isNear: isNear(address), standing, member });
    return places;
  }
}
