/** Networks that part and heal, and clocks that are wrong, with real ledgers, stores, logs and signatures. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { toHex } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { until } from '../until.ts';
import { DrivenNetwork, MEMBERS, mineOn } from './driven.ts';

const HOUR = 3_600_000;
let network: DrivenNetwork;
beforeEach(() => {
  network = new DrivenNetwork();
});
afterEach(async () => {
  await network.close();
});

const nodes = () => [...network.running.values()].map(({ node }) => node);
const heightOf = (name: string) => network.running.get(name)?.node.chain.head().height ?? -1;
const reached = (height: number) => until(() => nodes().every((node) => node.chain.head().height >= height));

function expectOneChain(): void {
  const lowest = Math.min(...nodes().map((node) => node.chain.head().height));
  for (let height = 0; height <= lowest; height++)
    expect(new Set(nodes().map((node) => toHex(node.chain.cut(height)?.cutId ?? new Uint8Array()))).size).toBe(1);
}

test('halves that do not hear each other make no cut; healed, they go on, and the one that was cut off catches up', async () => {
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  await reached(2);
  const side = (name: unknown) => (name === 'm0' || name === 'm1' ? 0 : 1);
  network.network.carries = (from, to) => side(from) === side(to);
  const before = nodes().map((node) => node.chain.head().height);
  // Two of four vote and wait. What had been heard before may still decide one height.
  const states = () => [...network.running.values()].map(({ driver }) => driver.state.step);
  await until(() => states().every((step) => step === 'prevote' || step === 'precommit'));
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(Math.max(...nodes().map((node) => node.chain.head().height))).toBeLessThanOrEqual(Math.max(...before) + 1);
  network.network.carries = () => true;
  await reached(Math.max(...before) + 3);
  network.network.carries = (from, to) => from !== 'm3' && to !== 'm3';
  // It may write a cut that was decided before, and then have heard all votes for the one after it.
  const newest = Math.max(...nodes().map((node) => node.chain.head().height));
  await until(() => heightOf('m0') >= newest + 4);
  expect(heightOf('m3')).toBeLessThanOrEqual(newest + 1);
  network.network.carries = () => true;
  await reached(heightOf('m0') + 1);
  expectOneChain();
});

test('members in a line, each with its neighbours alone, make one chain: others’ votes, proposals and blocks are handed on', async () => {
  const place = (name: unknown) => Number(String(name).slice(1));
  network.network.carries = (from, to) => Math.abs(place(from) - place(to)) === 1;
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  await reached(2);
  const [first] = nodes();
  const id = await mineOn(first as NonNullable<typeof first>, developmentKey('alice').address);
  await until(() => nodes().every((node) => node.chain.block(id)?.registeredHeight !== undefined));
  expectOneChain();
});

test('two members without a connection get each other’s votes and proposals through a neighbour, though nobody says what it lacks', async () => {
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  await reached(2);
  const copies = new Map<string, number>();
  const isApart = (name: unknown) => name === 'm0' || name === 'm1';
  network.network.carries = (from, to, bytes) => {
    const [type] = bytes;
    const copy = `${from} ${to} ${Buffer.from(bytes).toString('base64')}`;
    if (type === MESSAGE_TYPES.vote || type === MESSAGE_TYPES.proposal) copies.set(copy, (copies.get(copy) ?? 0) + 1);
    return type !== MESSAGE_TYPES.have;
  };
  network.network.links = (one, other) => !(isApart(one) && isApart(other));
  // Three of four are left: each of their votes is needed by each.
  await network.stop('m3');
  const before = Math.max(heightOf('m0'), heightOf('m1'));
  await until(() => heightOf('m0') >= before + 4 && heightOf('m1') >= before + 4);
  expectOneChain();
  expect([...copies.values()].filter((count) => count > 1)).toEqual([]);
});

test.each([HOUR, -HOUR])('a member whose clock is off by %d ms holds nobody up, and follows', async (millis) => {
  for (let member = 0; member < MEMBERS; member++)
    await network.start(`m${member}`, member, member === 2 ? { now: () => steadyMillis() + millis } : {});
  await reached(5);
  expectOneChain();
  const newest = nodes()[0]?.chain.head().timestampMillis as number;
  expect(Math.abs(newest - steadyMillis())).toBeLessThan(HOUR / 2);
});
