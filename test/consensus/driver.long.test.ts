/** The driver with real ledgers, stores, logs and signatures; only the network is one in memory. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import type { Message, Peer } from '../../node/consensus/engine/effects.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { type Bytes, concat, equalBytes, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import type { LogFields } from '../../runtime/log/log.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { DrivenNetwork, MEMBERS, mineOn, type DrivenNetwork as Network } from './driven.ts';

const alice = developmentKey('alice').address;
let network: Network;

beforeEach(() => {
  network = new DrivenNetwork();
});
afterEach(async () => {
  await network.close();
});

const startAll = () => Promise.all(Array.from({ length: MEMBERS }, (_, i) => network.start(`m${i}`, i)));
const nodeOf = (name: string) => network.running.get(name)?.node as NonNullable<ReturnType<typeof find>>;
const find = (name: string) => network.running.get(name)?.node;
const reached = (height: number) =>
  until(() => [...network.running.values()].every(({ node }) => node.chain.head().height >= height));

function expectOneChain(): void {
  const nodes = [...network.running.values()].map(({ node }) => node);
  const lowest = Math.min(...nodes.map((node) => node.chain.head().height));
  for (let height = 0; height <= lowest; height++)
    expect(new Set(nodes.map((node) => toHex(node.chain.cut(height)?.cutId ?? new Uint8Array()))).size).toBe(1);
}

/** Members stand in the order of their identifiers, not of their names. */
const selfOf = (name: Peer) => network.running.get(String(name))?.driver.state.self;

const consensusMessage = (bytes: Bytes): Message | undefined =>
  (bytes[0] as number) <= MESSAGE_TYPES.finalized ? decodeMessage(bytes) : undefined;

test('four members and a node that follows make one chain, over an epoch’s end, and a block found at the follower is registered', async () => {
  await startAll();
  await network.start('plain');
  await reached(2);
  const id = await mineOn(nodeOf('plain'), alice);
  await until(() =>
    [...network.running.values()].every(({ node }) => node.chain.block(id)?.registeredHeight !== undefined),
  );
  await reached(26);
  expectOneChain();
  const header = nodeOf('m0').chain.cut(25)?.header;
  // Precommits that came after the decision count too: whoever signed is named by the next header.
  expect([...network.running.values()].map(({ node }) => node.chain.cut(25)?.header.signers)).toEqual(
    new Array(5).fill(header?.signers),
  );
  expect(nodeOf('m0').chain.certificate(25)?.signatures.length).toBeGreaterThanOrEqual(3);
});

test('a member with a checkpoint stops before a cut that contradicts it, whoever signed that', async () => {
  const names = ['m0', 'm1', 'm2'];
  await Promise.all(names.map((name, i) => network.start(name, i)));
  await reached(4);
  const truth = nodeOf('m0').chain.cut(2)?.cutId as Bytes;
  const reasons: unknown[] = [];
  const log = { ...quietLog, warn: (_: string, fields?: LogFields) => void reasons.push(fields?.reason) };
  const { node } = await network.start('m3', 3, { log }, [
    { height: 2, cutId: truth },
    { height: 4, cutId: new Uint8Array(truth.length) },
  ]);
  const faults: string[] = [];
  node.on('fault', ({ message }) => void faults.push(message));
  await until(() => faults.length > 0 || node.chain.head().height >= 4);
  expect(faults).toEqual([
    expect.stringMatching(/^the committee stands for cut 4, which breaks a rule here: cut 4 is /),
  ]);
  expect(reasons).toContainEqual(expect.stringMatching(/^cut 4 is [0-9a-f]+, and the checkpoint is 0+: compare/));
  expect(node.chain.head().height).toBe(3);
});

test('with one member away the chain goes on; it comes back with its store and log, and catches up', async () => {
  await startAll();
  await reached(3);
  await network.stop('m1');
  const { height } = nodeOf('m0').chain.head();
  await reached(height + 5);
  const { driver } = await network.start('m1', 1);
  await until(() => nodeOf('m1').chain.head().height >= nodeOf('m0').chain.head().height - 1);
  const signed = driver.state.height;
  await until(() => driver.state.height > signed + 2 && driver.state.self >= 0);
  expectOneChain();
});

test('all are stopped and started again: the chain goes on where it was', async () => {
  await startAll();
  await reached(3);
  const names = [...network.running.keys()];
  await Promise.all(names.map((name) => network.stop(name)));
  await startAll();
  const { height } = nodeOf('m0').chain.head();
  expect(height).toBeGreaterThanOrEqual(3);
  await reached(height + 3);
  expectOneChain();
});

test('no member ever sends two different votes of one height, round and kind, and none before it is in its log', async () => {
  const written = new Set<string>();
  const sent = new Map<string, string>();
  const wrong: string[] = [];
  const keyOf = (message: Message) =>
    message.type === 'vote'
      ? `${message.vote.member}/${message.vote.height}/${message.vote.round}/${message.vote.kind}`
      : undefined;
  network.network.carries = (from, _, bytes) => {
    const message = consensusMessage(bytes);
    const key = message && keyOf(message);
    if (message?.type !== 'vote' || key === undefined || message.vote.member !== selfOf(from)) return true;
    if ((sent.get(key) ?? message.vote.cut) !== message.vote.cut) wrong.push(`two votes: ${key}`);
    sent.set(key, message.vote.cut);
    if (!written.has(toHex(message.vote.signature))) wrong.push(`not written: ${key}`);
    return true;
  };
  for (let member = 0; member < MEMBERS; member++) {
    const { chainId } = (await network.start(`m${member}`)).node.chain;
    await network.stop(`m${member}`);
    const signer = await network.signer(`m${member}`, member, chainId);
    const log = {
      close: () => signer.log.close(),
      append: async (record: Parameters<typeof signer.log.append>[0]) => {
        await signer.log.append(record);
        if (record.message.type === 'vote') written.add(toHex(record.message.vote.signature));
      },
    };
    await network.start(`m${member}`, undefined, { signer: { ...signer, log } });
  }
  await reached(4);
  expect(wrong).toEqual([]);
  // Both votes of three members at four heights at least: the last one may listen all the time.
  expect(sent.size).toBeGreaterThanOrEqual(4 * 2 * 3);
});

test('a member whose log cannot be written is silent until it can', async () => {
  let isFull = true;
  const heard = new Set<number>();
  network.network.carries = (from, _, bytes) => {
    const message = consensusMessage(bytes);
    if (from === 'm3' && message?.type === 'vote' && message.vote.member === selfOf(from))
      heard.add(message.vote.height);
    return true;
  };
  const { chainId } = (await network.start('m3')).node.chain;
  await network.stop('m3');
  const signer = await network.signer('m3', 3, chainId);
  const append = async (record: Parameters<typeof signer.log.append>[0]) => {
    if (isFull) throw new Error('no space left on device');
    await signer.log.append(record);
  };
  await network.start('m3', undefined, { signer: { ...signer, log: { append, close: () => signer.log.close() } } });
  for (let member = 0; member < 3; member++) await network.start(`m${member}`, member);
  await until(() => nodeOf('m0').chain.head().height >= 3);
  expect([...heard]).toEqual([]);
  isFull = false;
  await until(() => heard.size >= 2);
  expectOneChain();
});

test('a neighbour that brings an invalid signature is dropped; a vote of a stranger or of a past height costs it nothing', async () => {
  const [first] = await startAll();
  await reached(2);
  const { state } = (first as NonNullable<typeof first>).driver;
  const forged = (member: number, height: number, round = 0) =>
    encodeMessage({
      type: 'vote',
      vote: { kind: 1, height, round, cut: 'x'.repeat(48), member, signature: new Uint8Array(3309) },
    });
  const stranger = network.network.transport('stranger');
  stranger.start({ joined: () => undefined, left: () => undefined, message: () => undefined });
  stranger.send('m0', forged(7, state.height));
  stranger.send('m0', forged(1, 1));
  stranger.send('m0', forged(1, state.height + 9));
  const { height } = nodeOf('m0').chain.head();
  await reached(height + 1);
  expect(network.network.dropped).toEqual([]);
  // Again and again: one that comes right after a commit is of a past height.
  await until(() => {
    stranger.send('m0', forged((state.self + 1) % MEMBERS, state.height, 3));
    return network.network.dropped.some(({ reason }) => reason.startsWith('an invalid signature'));
  });
  stranger.send('m0', Uint8Array.of(2, 1, 2, 3));
  await until(() => network.network.dropped.some(({ reason }) => reason.startsWith('malformed')));
  expect(new Set(network.network.dropped.map(({ by, peer }) => `${String(by)} ${String(peer)}`))).toEqual(
    new Set(['m0 stranger']),
  );
  await stranger.close();
});

test('a key that runs twice signs nothing more', async () => {
  await startAll();
  await reached(2);
  const { driver } = await network.start('twin', 1);
  await until(() => driver.state.stopped || (network.running.get('m1')?.driver.state.stopped ?? false));
  const { height } = nodeOf('m0').chain.head();
  await until(() => nodeOf('m0').chain.head().height >= height + 2);
  expectOneChain();
});

test('block messages: bytes there and back; what has another form is refused', () => {
  const ids = [1, 2].map((n) => new Uint8Array(48).fill(n));
  const header = new Uint8Array(312).fill(3);
  for (const message of [
    { type: 'want', ids },
    { type: 'offer', ids: ids.slice(0, 1) },
    { type: 'block', header, body: Uint8Array.of(4, 5) },
  ] as const)
    expect(decodeBlockMessage(encodeBlockMessage(message))).toEqual(message);
  expect(encodeBlockMessage({ type: 'want', ids })).toEqual(concat(Uint8Array.of(6, 2), ...ids));
  expect(encodeBlockMessage({ type: 'block', header, body: Uint8Array.of(9) })[0]).toBe(7);
  expect(encodeBlockMessage({ type: 'offer', ids })[0]).toBe(8);
  expect(decodeBlockMessage(Uint8Array.of(4, 1))).toBeUndefined();
  const wanted = encodeBlockMessage({ type: 'want', ids });
  for (const bytes of [
    Uint8Array.of(6, 0),
    Uint8Array.of(6, 65),
    wanted.subarray(0, 97),
    concat(wanted, header),
    header,
  ])
    expect(() => decodeBlockMessage(Uint8Array.of(7, ...bytes).subarray(bytes === header ? 0 : 1, 312))).toThrow(
      ProtocolError,
    );
});

test('a body that is not the block’s makes no verdict: it is asked of another neighbour', async () => {
  await startAll();
  await network.start('plain');
  await reached(2);
  let lies = 0;
  network.network.carries = (from, to, bytes) => {
    // The finder's blocks reach the others only through a cut, and the first body that a member gets is junk.
    if (bytes[0] === 8) return false;
    if (bytes[0] === 7 && lies < 3) {
      lies++;
      bytes.fill(0xff, 1 + 312);
    }
    return from !== to;
  };
  const id = await mineOn(nodeOf('m0'), alice);
  await until(() =>
    [...network.running.values()].every(({ node }) => node.chain.block(id)?.registeredHeight !== undefined),
  );
  expect(lies).toBe(3);
  expect(network.network.dropped.some(({ reason }) => reason === 'wrong_body')).toBe(true);
  expectOneChain();
});

test('blocks that come before their parent, or before the cut they stand on, are taken in all the same', async () => {
  await startAll();
  await network.start('plain');
  await reached(2);
  let isHeld = true;
  const held: (() => void)[] = [];
  const heldFor = new Set<Peer>();
  network.network.carries = (from, to, bytes) => {
    const message = from === 'plain' ? decodeBlockMessage(bytes) : undefined;
    // The first one may be asked for before the node that found it has told the test of it.
    const isFirst = (header: Bytes) => ids[0] === undefined || equalBytes(blockId(header), ids[0]);
    if (!isHeld || message?.type !== 'block' || !isFirst(message.header)) return true;
    held.push(() => network.network.deliver(from, to, bytes));
    heldFor.add(to);
    return false;
  };
  // The first one is held up on its way to everybody; what stands on it is not.
  const ids: Bytes[] = [];
  for (let i = 0; i < 4; i++) ids.push(await mineOn(nodeOf('plain'), alice));
  // One that waits long asks again, so there may be more of them than members.
  await until(() => heldFor.size === MEMBERS);
  await reached(nodeOf('m0').chain.head().height + 1);
  isHeld = false;
  for (const deliver of held) deliver();
  await until(() =>
    ids.every((id) =>
      [...network.running.values()].every(({ node }) => node.chain.block(id)?.registeredHeight !== undefined),
    ),
  );
  expectOneChain();
});
