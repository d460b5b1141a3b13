/** The overlay connections of a node, by its own names for them. */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { clientKey } from '../../../runtime/clients/client-address.ts';
import { type ListenAddress, showListenAddress } from '../../../runtime/command-line/command-line.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { Peer } from '../engine/effects.ts';
import type { Claim, OverlayLink } from '../link/overlay-link.ts';
import type { ProvenLink } from '../relays/relaying.ts';
import { isRelayed, type Place, RELAYED, type Standing } from './inbound-places.ts';
import type { Companion } from './transport.ts';

export type Link = {
  readonly link: OverlayLink;
  readonly address: string;
  readonly isInbound: boolean;
  /** The dialled address; undefined for an incoming connection, and for one through a relay. */
  readonly at?: ListenAddress | undefined;
  isReady: boolean;
  standing: Standing;
  /** Its key is not, or not yet, known to be a member's. */
  claim?: Claim | undefined;
  member?: string | undefined;
  /** Proven. */
  key?: Bytes | undefined;
  /** This side has not identified itself, for lack of capacity. */
  isWithheld?: boolean;
};

/** The key for limits: an address, the network of one customer, or a validator behind a relay. */
export const limitKeyOf = (address: string): string => (address.startsWith(RELAYED) ? address : clientKey(address));

/** Each message is counted with many connections: two kilobytes are not made a text each time. */
const names = new WeakMap<Bytes, string>();

function nameOfKey(key: Bytes): string {
  const name = names.get(key) ?? nameOf(key);
  names.set(key, name);
  return name;
}

/** The key for limits of a neighbour that is known: the key that it proved, where it was dialled, or its address. */
export const accountOf = ({ key, at, address }: Link): string =>
  key !== undefined ? nameOfKey(key) : at !== undefined ? showListenAddress(at) : limitKeyOf(address);

/** The same, and for all its circuits another one. */
export const accountByWay = (link: Link): string => `${isRelayed(link) ? RELAYED : ''}${accountOf(link)}`;

/**
 * What waits on the connections of all that are known: a queue each would add up to more than a gigabyte where most members read
 * nothing. Nobody has more waiting, on all its connections, than is left for others; so much is sure, for the largest messages. Strangers
 * have few places, and shorter queues.
 */
const MAX_WAITING_BYTES = 128 * 1024 * 1024;
const SURELY_WAITING_BYTES = 2 * 1024 * 1024;
/** Votes are not counted where little else waits. */
const UNCOUNTED_BYTES = 64 * 1024;

export class OverlayLinks extends Map<Peer, Link> {
  ready(): Peer[] {
    return [...this].filter(([, { isReady }]) => isReady).map(([peer]) => peer);
  }

  known(): Peer[] {
    return [...this.keys()].filter((peer) => this.isKnown(peer));
  }

  isKnown(peer: Peer): boolean {
    const { isReady = false, isInbound, standing } = this.get(peer) ?? {};
    return isReady && (!isInbound || standing !== 'stranger');
  }

  mayWait(to: Link, bytes: number): boolean {
    if (to.standing === 'stranger' || to.link.waiting + bytes <= UNCOUNTED_BYTES) return true;
    const account = accountOf(to);
    let [own, all] = [bytes, 0];
    for (const other of this.values()) {
      const { waiting } = other.link;
      if (waiting === 0 || other.standing === 'stranger') continue;
      all += waiting;
      if (accountOf(other) === account) own += waiting;
    }
    return own <= Math.max(SURELY_WAITING_BYTES, MAX_WAITING_BYTES - all);
  }

  company(): Companion[] {
    const proven = new Map<string, { key: Bytes; peers: Peer[]; isRelayed: boolean }>();
    const unproven: Companion[] = [];
    for (const peer of this.known()) {
      const link = this.get(peer) as Link;
      const { key, isInbound } = link;
      if (key !== undefined) {
        const found = proven.get(nameOfKey(key)) ?? { key, peers: [], isRelayed: true };
        proven.set(nameOfKey(key), found);
        found.peers.push(peer);
        found.isRelayed &&= isRelayed(link);
      }
      // Incoming connections from an address named by the operator are not limited. Each such neighbour is dialled only
      // once.
      else if (!isInbound) unproven.push({ key, peers: [peer] });
    }
    return [...proven.values(), ...unproven];
  }

  /**
   * Whether a direct connection (not through a relay) has proved this key: a validator that gets a route is then
   * dialled there.
   */
  isConnected(key: Bytes): boolean {
    return this.#direct(key) !== undefined;
  }

  nearest(peer: Peer): Peer {
    const found = this.get(peer);
    return (found?.key !== undefined && isRelayed(found) ? this.#direct(found.key) : undefined) ?? peer;
  }

  /** The newest one. */
  #direct(key: Bytes): Peer | undefined {
    const name = nameOfKey(key);
    let newest: Peer | undefined;
    for (const [peer, link] of this)
      if (link.isReady && link.key !== undefined && !isRelayed(link) && nameOfKey(link.key) === name) newest = peer;
    return newest;
  }

  /** All on which this key was proved. */
  of(key: Bytes): Link[] {
    return [...this.values()].filter((link) => link.key !== undefined && equalBytes(link.key, key));
  }

  /** Undefined if its other end proved nothing. */
  provenOf(peer: Peer, isMember: (key: Bytes) => boolean): ProvenLink | undefined {
    const { isReady, key, at } = this.get(peer) ?? {};
    return isReady === true && key !== undefined ? { peer, key, at, isMember: isMember(key) } : undefined;
  }

  /** Incoming connections, except one. */
  places(isNear: (address: string) => boolean, but?: Peer): Place[] {
    const places: Place[] = [];
    for (const [peer, { isInbound, address, standing, member }] of this)
      if (isInbound && peer !== but)
        places.push({ peer, address: limitKeyOf(address), isNear: isNear(address), standing, member });
    return places;
  }
}
