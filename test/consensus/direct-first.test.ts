/** A member with a direct connection and a circuit (consensus rule 24): what is sent to it once goes over the direct one, as a relay may hold back what it carries. */
import { expect, test } from 'vitest';
import { Receivers } from '../../node/consensus/driver/receivers.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import type { OverlayLink } from '../../node/consensus/link/overlay-link.ts';
import { PLACES, type Place, placeFor, RELAYED } from '../../node/consensus/reach/inbound-places.ts';
import { accountByWay, accountOf, type Link, OverlayLinks } from '../../node/consensus/reach/overlay-links.ts';

const committee = new Committee(new Uint8Array(48), [{ publicKey: Uint8Array.of(1), stake: 1n }]);

const linkOf = (key: number | undefined, address: string, isReady = true): Link => ({
  link: {} as OverlayLink,
  address,
  isInbound: true,
  isReady,
  standing: 'member',
  key: key === undefined ? undefined : Uint8Array.of(key),
});

test('the nearest connection is a direct one that has proved the same key, the newest of them; without one it is the circuit', () => {
  const links = new OverlayLinks([
    ['circuit', linkOf(1, `${RELAYED}1 by 2`)],
    ['old', linkOf(1, '192.0.2.1')],
    ['new', linkOf(1, '192.0.2.2')],
    ['not ready', linkOf(1, '192.0.2.3', false)],
    ['another', linkOf(2, '192.0.2.4')],
    ['lone circuit', linkOf(3, `${RELAYED}3 by 2`)],
    ['later circuit', linkOf(1, `${RELAYED}1 by 4`)],
  ]);
  const nearest = [...links.keys()].map((peer) => [peer, links.nearest(peer)]);
  expect(nearest).toEqual([
    ['circuit', 'new'],
    ['old', 'old'],
    ['new', 'new'],
    ['not ready', 'not ready'],
    ['another', 'another'],
    ['lone circuit', 'lone circuit'],
    ['later circuit', 'new'],
  ]);
  expect(links.nearest('gone')).toBe('gone');
});

test('what a member may cost is counted on all its connections together; what it brings on its circuits apart from what comes directly', () => {
  const links = ['192.0.2.1', '192.0.2.2', `${RELAYED}1 by 2`, `${RELAYED}1 by 3`].map((address) => linkOf(1, address));
  expect(new Set(links.map(accountOf)).size).toBe(1);
  const [direct, other, circuit, otherCircuit] = links.map(accountByWay);
  expect([other, otherCircuit]).toEqual([direct, circuit]);
  expect(circuit).not.toBe(direct);
});

test('questions to some neighbours go to no circuit of a member that is directly connected', () => {
  const peers = ['a', 'circuit of a', 'second circuit of a', 'circuit of b', 'c'];
  const receivers = new Receivers({
    peers: () => peers,
    known: () => peers,
    isKnown: (peer) => peers.includes(peer as string),
    company: () => [],
    nearest: (peer) => (String(peer).endsWith('circuit of a') ? 'a' : peer),
  });
  const asked = new Set(Array.from({ length: 10 }, () => receivers.of('some', committee)).flat());
  expect(asked).toEqual(new Set(['a', 'circuit of b', 'c']));
});

test('no circuit takes the place of a direct connection of the same member; a direct one takes that of a circuit', () => {
  const place = (peer: Peer, address: string): Place => ({
    peer,
    address,
    isNear: false,
    standing: 'member',
    member: 'm',
  });
  const full = (...places: Place[]): Place[] => {
    expect(places).toHaveLength(PLACES.perMember);
    return places;
  };
  const [circuit, direct] = [place('circuit', `${RELAYED}m by 1`), place('direct', '192.0.2.1')];
  const [nextCircuit, nextDirect] = [place('next', `${RELAYED}m by 2`), place('next', '192.0.2.2')];
  expect(placeFor(full(circuit, direct), nextCircuit)).toEqual({ admitted: true, evict: 'circuit' });
  expect(placeFor(full(circuit, direct), nextDirect)).toEqual({ admitted: true, evict: 'circuit' });
  expect(placeFor(full(direct, place('other', '192.0.2.3')), nextCircuit)).toEqual({ admitted: false });
  expect(placeFor(full(direct, place('other', '192.0.2.3')), nextDirect)).toEqual({ admitted: true, evict: 'other' });
});
