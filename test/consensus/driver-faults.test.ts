/** Networks that part and heal, clocks that are wrong, and a proposer that lies, with real ledgers, stores, logs and signatures. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeMessage, encodeMessage, MESSAGE_TYPES } from '../../node/consensus/messages.ts';
import { signedText } from '../../node/consensus/signatures.ts';
import { developmentKey, validatorName } from '../../node/development.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { toHex } from '../../protocol/bytes.ts';
import { CUT_HEADER_BYTES, decodeCutHeader, encodeCutHeader } from '../../protocol/cut.ts';
import { decodeProposedCut } from '../../protocol/proposal.ts';
import { steadyMillis } from '../../runtime/clock.ts';
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
  const alone = heightOf('m3');
  await until(() => heightOf('m0') >= alone + 4);
  expect(heightOf('m3')).toBeLessThanOrEqual(alone + 1);
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

test.each([HOUR, -HOUR])('a member whose clock is off by %d ms holds nobody up, and follows', async (millis) => {
  for (let member = 0; member < MEMBERS; member++)
    await network.start(`m${member}`, member, member === 2 ? { now: () => steadyMillis() + millis } : {});
  await reached(5);
  expectOneChain();
  const newest = nodes()[0]?.chain.head().timestampMillis as number;
  expect(Math.abs(newest - steadyMillis())).toBeLessThan(HOUR / 2);
});

test('a proposer that names another state is not voted for, whoever signs it', async () => {
  const { privateKey } = developmentKey(validatorName(1));
  let lies = 0;
  network.network.carries = (from, to, bytes) => {
    if (from !== 'm1' || bytes[0] !== MESSAGE_TYPES.proposal) return true;
    const message = decodeMessage(bytes);
    const chainId = network.running.get('m1')?.node.chain.chainId;
    const self = network.running.get('m1')?.driver.state.self;
    const committee = network.running.get('m1')?.driver.state.committee;
    if (message.type !== 'proposal' || chainId === undefined) return true;
    const { proposal } = message;
    // What it forwards for others it cannot sign.
    if (committee?.proposer(proposal.height, proposal.round) !== self || proposal.validRound >= 0) return true;
    const header = {
      ...decodeCutHeader(proposal.content.subarray(0, CUT_HEADER_BYTES)),
      stateRoot: new Uint8Array(48).fill(lies),
    };
    const content = new Uint8Array(
      Buffer.concat([encodeCutHeader(header), proposal.content.subarray(CUT_HEADER_BYTES)]),
    );
    const lie = { ...proposal, content, cut: nameOf(decodeProposedCut(content).cutId) };
    const signature = signMessage(privateKey, signedText(chainId, { type: 'proposal', proposal: lie }));
    lies++;
    network.network.deliver(from, to, encodeMessage({ type: 'proposal', proposal: { ...lie, signature } }));
    return false;
  };
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  await until(() => lies >= 6 && nodes().every((node) => node.chain.head().height >= 4));
  expectOneChain();
  const roots = nodes().flatMap((node) =>
    Array.from({ length: node.chain.head().height }, (_, i) => new Set(node.chain.cut(i + 1)?.header.stateRoot).size),
  );
  expect(Math.min(...roots)).toBeGreaterThan(1);
});
