/** Strangers that come from a few addresses under ever new names, take what they may, and leave: others keep their part of what all peers share. */
import type { MultiaddrConnection } from '@libp2p/interface';
import { expect, test } from 'vitest';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { ConnectionLimits } from '../../node/network/thread/connection-limits.ts';
import { GossipDesk } from '../../node/network/thread/gossip-desk.ts';

const ADDRESSES = 4;
/** Of one address: as many connections as the library admits. */
const NAMES_PER_SECOND = 20;
const SECONDS = 30;
const STEP_MILLIS = 1_000 / (ADDRESSES * NAMES_PER_SECOND);
const ANNOUNCEMENT = new Uint8Array(300);
/** Of an honest peer that relays batches of payments. */
const HONEST_MILLIS = 50;

test('the gossip of a busy honest peer comes beside strangers under ever new names', () => {
  let now = 0;
  const desk = new GossipDesk({ judge: async () => 'ignore', flood: () => undefined, steady: () => now });
  let [sent, lost, names] = [0, 0, 0];
  for (let due = 0; now < 1_000 * SECONDS; now += STEP_MILLIS) {
    const [name, address] = [`stranger ${names}`, `address ${names++ % ADDRESSES}`];
    while (desk.mayCome(name, ANNOUNCEMENT, address));
    desk.left(name);
    for (; due <= now; due += HONEST_MILLIS) {
      sent++;
      if (!desk.mayCome('honest', ANNOUNCEMENT, 'honest')) lost++;
    }
  }
  expect(sent).toBeGreaterThan(500);
  expect(lost).toBe(0);
});

/** Connections that ask to come: of each its end. */
function comingTo(limits: ConnectionLimits): (address: string) => (() => void) | undefined {
  return (address) => {
    const ends = new EventTarget();
    const connection = { remoteAddr: address, send: () => true, addEventListener: ends.addEventListener.bind(ends) };
    const isDenied = limits.gater.denyInboundConnection?.(connection as unknown as MultiaddrConnection);
    return isDenied === true ? undefined : () => void ends.dispatchEvent(new Event('close'));
  };
}

test('the gossip of a busy honest peer comes beside strangers with all addresses of a network of IPv6', () => {
  let now = 0;
  const limits = new ConnectionLimits(42, false, () => now);
  const desk = new GossipDesk({ judge: async () => 'ignore', flood: () => undefined, steady: () => now });
  const come = comingTo(limits);
  let [sent, lost] = [0, 0];
  for (let [due, names] = [0, 0]; now < 10_000; now += STEP_MILLIS) {
    const address = `2001:db8:7:${(++names).toString(16)}::1`;
    const leave = come(`/ip6/${address}/tcp/28705`);
    if (leave !== undefined) {
      const holder = limits.holderOf(`stranger ${names}`, `/ip6/${address}/tcp/28705`);
      while (desk.mayCome(`stranger ${names}`, ANNOUNCEMENT, holder));
      desk.left(`stranger ${names}`);
      leave();
    }
    for (; due <= now; due += HONEST_MILLIS) {
      sent++;
      if (!desk.mayCome('honest', ANNOUNCEMENT, 'honest')) lost++;
    }
  }
  expect(sent).toBeGreaterThan(150);
  expect(lost).toBe(0);
});

test('identifiers of a busy honest peer are looked up beside strangers under ever new names', () => {
  let now = 0;
  const relay = new TransactionRelay({
    node: { on: () => () => undefined, chain: {} },
    network: {},
    steady: () => now,
    holderOf: (peer: string) => peer.split(' of ')[1] ?? peer,
  } as unknown as TransactionRelayDependencies);
  let [sent, lost, names] = [0, 0, 0];
  for (let due = 0; now < 1_000 * SECONDS; now += STEP_MILLIS) {
    const name = `stranger ${names} of address ${names++ % ADDRESSES}`;
    while (relay.mayRead(name, 16));
    for (; due <= now; due += HONEST_MILLIS) {
      sent++;
      if (!relay.mayRead('honest', 16)) lost++;
    }
  }
  relay.close();
  expect(sent).toBeGreaterThan(500);
  expect(lost).toBe(0);
});
