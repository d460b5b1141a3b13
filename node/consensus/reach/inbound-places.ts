/**
 * Limits on incoming connections. Members of the committee that proved their key, and neighbours at addresses named by
 * the operator, have reserved places that strangers cannot take. Connections that have not identified themselves have
 * few places; when these are full, one of the address with the most connections is closed. Identified strangers share
 * the rest; an address with many connections gives way to one with few.
 */
import type { Peer } from '../engine/effects.ts';

export const PLACES = {
  /** Connections that have not identified themselves. */
  waiting: 128,
  waitingPerAddress: 4,
  strangers: 64,
  strangersPerAddress: 8,
  /** Connections of one member: after a reconnect the old one may not be known to be dead yet. */
  perMember: 2,
  perNamedAddress: 4,
} as const;

/** Prefix of the address of a validator reached through a relay; both identifiers follow. */
export const RELAYED = 'relayed ';

export type Standing = 'waiting' | 'stranger' | 'named' | 'member';

export type Place = {
  readonly peer: Peer;
  /** The key for limits: an address, or a network of one customer. */
  readonly address: string;
  /** From this machine: not limited by address. */
  readonly isNear: boolean;
  readonly standing: Standing;
  /** The key of a member. */
  readonly member?: string | undefined;
};

/** `evict` names a connection to close, if needed. */
export type Admission = { readonly admitted: true; readonly evict?: Peer } | { readonly admitted: false };

const REFUSED: Admission = { admitted: false };
const FREE: Admission = { admitted: true };

export const isRelayed = ({ address }: { readonly address: string }): boolean => address.startsWith(RELAYED);

const ofAddress = (places: readonly Place[], address: string) => places.filter((place) => place.address === address);

/** The places of the address with the most connections, or of several such addresses; oldest first. */
function mostCrowded(places: readonly Place[]): { readonly perAddress: number; readonly crowd: readonly Place[] } {
  const counts = new Map<string, number>();
  for (const { address } of places) counts.set(address, (counts.get(address) ?? 0) + 1);
  const perAddress = Math.max(0, ...counts.values());
  return { perAddress, crowd: places.filter(({ address }) => counts.get(address) === perAddress) };
}

/**
 * A new connection. A random one of the most crowded addresses is closed, not the oldest: however fast strangers
 * connect, an honest node has a chance to finish its handshake. `random` gives an integer below its argument.
 */
export function admit(
  places: readonly Place[],
  { address, isNear }: Pick<Place, 'address' | 'isNear'>,
  random: (limit: number) => number,
): Admission {
  const waiting = places.filter(({ standing }) => standing === 'waiting');
  if (!isNear && ofAddress(waiting, address).length >= PLACES.waitingPerAddress) return REFUSED;
  if (waiting.length < PLACES.waiting) return FREE;
  const { crowd } = mostCrowded(waiting);
  return { admitted: true, evict: (crowd[random(crowd.length)] as Place).peer };
}

/** A connection that has identified itself. `places` are the others. */
export function placeFor(places: readonly Place[], place: Omit<Place, 'peer'>): Admission {
  const same = places.filter(({ standing }) => standing === place.standing);
  if (place.standing === 'member') {
    const own = same.filter(({ member }) => member === place.member);
    if (own.length < PLACES.perMember) return FREE;
    // A neighbour that it dials can hand the connection on to here: that ends an earlier one of that sort, not its own.
    // And no circuit ends a direct one: its relay may hold back what it carries.
    const [oldest] = ofAddress(own, place.address);
    const ended = oldest ?? own.findLast(isRelayed) ?? (isRelayed(place) ? undefined : own.at(-1));
    return ended === undefined ? REFUSED : { admitted: true, evict: ended.peer };
  }
  const own = ofAddress(same, place.address);
  if (place.standing === 'named') return own.length < PLACES.perNamedAddress ? FREE : REFUSED;
  if (!place.isNear && own.length >= PLACES.strangersPerAddress) return REFUSED;
  if (same.length < PLACES.strangers) return FREE;
  const { perAddress, crowd } = mostCrowded(same);
  const youngest = crowd.at(-1);
  return youngest !== undefined && perAddress > own.length + 1 ? { admitted: true, evict: youngest.peer } : REFUSED;
}
