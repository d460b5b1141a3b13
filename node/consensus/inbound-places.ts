/**
 * Who may stay of those that connected to this node. Members of the committee that proved their key, and neighbours at addresses that the operator named, have places of their own: strangers, however many, take none of them.
 * Connections that have not said who they are have few places, and one of the most crowded address makes room. Strangers that did share the rest; an address with many gives way to one with few.
 */
import type { Peer } from './effects.ts';

export const PLACES = {
  /** That have not said who they are. */
  waiting: 128,
  waitingPerAddress: 4,
  strangers: 64,
  strangersPerAddress: 8,
  /** Of one member: one that comes back is there before its old connection is known to be dead. */
  perMember: 2,
  perNamedAddress: 4,
} as const;

export type Standing = 'waiting' | 'stranger' | 'named' | 'member';

export type Place = {
  readonly peer: Peer;
  /** What limits are counted by: an address, or a network of one customer. */
  readonly address: string;
  /** On this machine: not counted by address. */
  readonly isNear: boolean;
  readonly standing: Standing;
  /** The key of a member. */
  readonly member?: string | undefined;
};

/** `evict` makes room, where it is needed. */
export type Seat = { readonly seated: true; readonly evict?: Peer } | { readonly seated: false };

const REFUSED: Seat = { seated: false };
const FREE: Seat = { seated: true };

const ofAddress = (places: readonly Place[], address: string) => places.filter((place) => place.address === address);

/** The places of the most crowded address, or of all of them where several are as crowded. They come in the order in which they were taken, the oldest first. */
function mostCrowded(places: readonly Place[]): { readonly perAddress: number; readonly crowd: readonly Place[] } {
  const counts = new Map<string, number>();
  for (const { address } of places) counts.set(address, (counts.get(address) ?? 0) + 1);
  const perAddress = Math.max(0, ...counts.values());
  return { perAddress, crowd: places.filter(({ address }) => counts.get(address) === perAddress) };
}

/**
 * A connection that was just made. Any of the most crowded addresses makes room, not the oldest: however quickly strangers come, an honest one has its chance to get to the end of its handshake. `random` gives an
 * integer below its argument.
 */
export function admit(
  places: readonly Place[],
  { address, isNear }: Pick<Place, 'address' | 'isNear'>,
  random: (limit: number) => number,
): Seat {
  const waiting = places.filter(({ standing }) => standing === 'waiting');
  if (!isNear && ofAddress(waiting, address).length >= PLACES.waitingPerAddress) return REFUSED;
  if (waiting.length < PLACES.waiting) return FREE;
  const { crowd } = mostCrowded(waiting);
  return { seated: true, evict: (crowd[random(crowd.length)] as Place).peer };
}

/** A connection that has said who it is. `places` are the others. */
export function seat(places: readonly Place[], place: Omit<Place, 'peer'>): Seat {
  const same = places.filter(({ standing }) => standing === place.standing);
  if (place.standing === 'member') {
    const own = same.filter(({ member }) => member === place.member);
    const [oldest] = own.length < PLACES.perMember ? [] : own;
    return oldest === undefined ? FREE : { seated: true, evict: oldest.peer };
  }
  const own = ofAddress(same, place.address);
  if (place.standing === 'named') return own.length < PLACES.perNamedAddress ? FREE : REFUSED;
  if (!place.isNear && own.length >= PLACES.strangersPerAddress) return REFUSED;
  if (same.length < PLACES.strangers) return FREE;
  const { perAddress, crowd } = mostCrowded(same);
  const youngest = crowd.at(-1);
  return youngest !== undefined && perAddress > own.length + 1 ? { seated: true, evict: youngest.peer } : REFUSED;
}
