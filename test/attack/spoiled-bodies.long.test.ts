/**
 * Spoiled copies of block bodies between validators, with real ledgers, stores, logs and signatures: a liar among four, a stranger with a block of its own, and a stranger with nothing that brings a
 * final cut to a validator that restarts. Every header commits to its body, so nobody ends, the sender loses its place, and the chain goes on. And what a node does over a cut that breaks a rule with the right bodies.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { REFUTED_CUT_FILE } from '../../node/chain/refuted-cut.ts';
import { decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import { servedOf } from '../../node/consensus/driver/catch-up.ts';
import { encodeMessage } from '../../node/consensus/driver/messages.ts';
import { BLOCK_MESSAGE_TYPES, MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { type Driven, DrivenNetwork, MEMBERS, mineOn } from '../consensus/driven.ts';
import { treasuryOutput } from '../network/peers.ts';
import { payment } from '../node/bed.ts';
import { until } from '../until.ts';

const alice = developmentKey('alice').address;
const LIMIT = { millis: 60_000 };
const STRANGER = 'stranger';

let network: DrivenNetwork;
let faults: string[];
let paid: number;
beforeEach(() => {
  network = new DrivenNetwork();
  faults = [];
  paid = 0;
});
afterEach(() => network.close());

const nodes = () => [...network.running.values()].map(({ node }) => node);
const nodeOf = (name: string) => (network.running.get(name) as Driven).node;
const heightOf = (name: string) => nodeOf(name).chain.head().height;

async function start(name: string, member?: number, ...more: [] | [Parameters<DrivenNetwork['start']>[2]]) {
  const driven = await network.start(name, member, ...more);
  driven.node.on('fault', ({ message }) => void faults.push(`${name}: ${message}`));
  return driven;
}

/** Until it holds; a node that ended by itself fails the test at once. */
const reached = (holds: () => boolean) =>
  until(() => {
    expect(faults).toEqual([]);
    return holds();
  }, LIMIT);

/** A block with a payment in it. */
async function mine(node: ConsensusNode): Promise<Bytes> {
  const wire = payment(node.chain, [treasuryOutput(node.chain, paid++)], [{ address: alice, amount: 5n }]);
  expect(await node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
  return await mineOn(node, alice);
}

/** The ways that were refused before the root was compared come first. */
const SPOILS: readonly ((transactions: readonly Bytes[]) => readonly Bytes[])[] = [
  (transactions) => [...transactions, ...transactions],
  (transactions) => transactions.map((wire) => wire.with(wire.length - 1, (wire.at(-1) as number) ^ 1)),
  () => [new Uint8Array(100)],
  () => [],
];
const decodeBlockMessageOf = (bytes: Bytes) =>
  (Object.values(BLOCK_MESSAGE_TYPES) as number[]).includes(bytes[0] as number) ? decodeBlockMessage(bytes) : undefined;

let spoiled = 0;
function spoil(bytes: Bytes, which = spoiled++ % SPOILS.length): Bytes {
  const message = decodeBlockMessage(bytes);
  if (message?.type !== 'block') return bytes;
  const body = decodeBody(message.body);
  const transactions = (SPOILS[which] as (typeof SPOILS)[0])(body.transactions);
  return encodeBlockMessage({ ...message, body: encodeBody({ ...body, transactions }) });
}

const isRegistered = (id: Bytes) => (node: ConsensusNode) => node.chain.block(id)?.registeredHeight !== undefined;

function expectOneChain(): void {
  const lowest = Math.min(...nodes().map((node) => node.chain.head().height));
  for (let height = 0; height <= lowest; height++)
    expect(new Set(nodes().map((node) => toHex(node.chain.cut(height)?.cutId as Bytes))).size).toBe(1);
}

/** The first body of each block that m3 gets is the liar's, and comes once a cut names the block. */
function lieTo3(liar: string): void {
  const [held, named, told] = [new Map<string, Bytes>(), new Set<string>(), new Set<string>()];
  const tell = (id: string, bytes: Bytes) => {
    told.add(id);
    network.network.deliver(liar, 'm3', spoil(bytes));
  };
  network.network.carries = (from, to, bytes) => {
    const message = decodeBlockMessageOf(bytes);
    // Members' offers do not reach it: whom it asks among them it asks because of a cut. A liar among them waits until it is asked itself.
    if (from === 'm3' && (liar === STRANGER ? to !== STRANGER : to === liar) && message?.type === 'want')
      for (const id of message.ids.map(toHex)) {
        named.add(id);
        const bytesHeld = held.get(id);
        if (bytesHeld !== undefined && !told.has(id)) tell(id, bytesHeld);
      }
    if (to !== 'm3') return true;
    // A stranger offers what it has without end.
    if (liar === STRANGER && from !== liar)
      for (const { id } of nodeOf(liar).chain.waitingBlocks())
        network.network.deliver(liar, to, encodeBlockMessage({ type: 'offer', ids: [id] }));
    if (message?.type === 'offer') return from === STRANGER;
    if (message?.type !== 'block') return true;
    const id = toHex(blockId(message.header));
    if (from !== liar) return told.has(id);
    if (named.has(id)) tell(id, bytes);
    else held.set(id, bytes);
    return false;
  };
}

/**
 * Until the liar was dropped for every way to spoil a body, and nobody else: on a busy machine its answer may come when others are asked already, and
 * is not looked at.
 */
async function mineUntilDropped(liar: string): Promise<void> {
  const { dropped } = network.network;
  do {
    const id = await mine(nodeOf(liar));
    await reached(() => nodes().every(isRegistered(id)));
  } while (dropped.length < SPOILS.length);
  expect(dropped).toEqual(dropped.map(() => ({ by: 'm3', peer: liar, reason: 'wrong_body' })));
}

test('a liar among four whose spoiled bodies come first stops nobody, and is dropped', async () => {
  for (let member = 0; member < MEMBERS; member++) await start(`m${member}`, member);
  lieTo3('m1');
  await mineUntilDropped('m1');
  expectOneChain();
});

test('a stranger with blocks of its own that sends one validator other bodies ends nobody, and is dropped', async () => {
  for (let member = 0; member < MEMBERS; member++) await start(`m${member}`, member);
  network.network.strangers.add(STRANGER);
  await start(STRANGER);
  await reached(() => heightOf(STRANGER) >= 1);
  lieTo3(STRANGER);
  await mineUntilDropped(STRANGER);
  expectOneChain();
});

test('a stranger that brings a final cut is not asked before members, and its spoiled blocks end no validator that restarts', async () => {
  for (let member = 0; member < MEMBERS; member++) await start(`m${member}`, member);
  await network.stop('m3');
  const ids: Bytes[] = [];
  for (let i = 0; i < SPOILS.length; i++) {
    ids.push(await mine(nodeOf('m0')));
    await reached(() => nodes().every(isRegistered(ids.at(-1) as Bytes)));
  }
  network.network.strangers.add(STRANGER);
  const transport = network.network.transport(STRANGER);
  const source = nodeOf('m0');
  const asked: { readonly by: string; readonly id: string }[] = [];
  transport.start({
    joined: () => undefined,
    left: () => undefined,
    message: (peer, bytes) => {
      if (bytes[0] === MESSAGE_TYPES.have && peer === 'm3') push();
      const message = decodeBlockMessage(bytes);
      if (message?.type !== 'want') return;
      for (const id of message.ids) {
        asked.push({ by: String(peer), id: toHex(id) });
        const [header, body] = [source.chain.block(id)?.header, source.chain.blockBody(id)];
        if (header !== undefined && body !== undefined)
          transport.send(peer, spoil(encodeBlockMessage({ type: 'block', header, body })));
      }
    },
  });
  /** The genuine next cut, before anybody else brings it. */
  const push = () => {
    const victim = network.running.get('m3');
    if (victim === undefined) return;
    const served = servedOf(source.ledger, victim.node.chain.head().height + 1, victim.driver.state);
    if (served.type === 'finalized') transport.send('m3', encodeMessage(served));
  };
  const wanted: string[] = [];
  let areMembersMute = true;
  network.network.carries = (from, to, bytes) => {
    const message = decodeBlockMessageOf(bytes);
    if (from === 'm3' && message?.type === 'want') for (const id of message.ids) wanted.push(`${to} ${toHex(id)}`);
    // Cuts come from the stranger alone; blocks do not come from members before it was asked too.
    if (to !== 'm3' || from === STRANGER) return true;
    if (bytes[0] === MESSAGE_TYPES.finalized || message?.type === 'offer') return false;
    return message?.type !== 'block' || !areMembersMute;
  };
  await start('m3', 3);
  await reached(() => asked.length > 0);
  const first = asked[0] as { readonly id: string };
  // Each of the members was asked for that block before the stranger was, and it once.
  const order = wanted.filter((line) => line.endsWith(first.id)).map((line) => line.split(' ')[0]);
  expect(new Set(order.slice(0, order.indexOf(STRANGER)))).toEqual(new Set(['m0', 'm1', 'm2']));
  await reached(() => network.network.dropped.some(({ by, peer }) => by === 'm3' && peer === STRANGER));
  expect(asked.filter(({ id }) => id === first.id)).toHaveLength(1);
  areMembersMute = false;
  await reached(() => ids.every((id) => isRegistered(id)(nodeOf('m3'))));
  expect(network.network.dropped.every(({ peer }) => peer === STRANGER)).toBe(true);
  await transport.close();
});

/** A follower whose execution finds fault with the cut of a block, so many times. */
async function startDoubter(id: Bytes, times: number) {
  let left = times;
  let forgot = 0;
  const wrong = 'its execution gives another stateRoot: 01 here, 02 in the cut';
  const names = ({ blockIds }: ProposedCut) => blockIds.some((named) => Buffer.compare(named, id) === 0);
  const over = <T extends object>(target: T, instead: Partial<T>): T =>
    new Proxy(target, {
      get: (of, key) => {
        const value: unknown = Reflect.get(key in instead ? instead : of, key);
        return typeof value === 'function' && !(key in instead) ? value.bind(of) : value;
      },
    });
  const driven = await network.start('doubter', undefined, {}, [], (node) =>
    over(node, {
      ledger: over(node.ledger, {
        execute: (cut) => (names(cut) && left-- > 0 ? wrong : node.ledger.execute(cut)),
        forget: (ids) => {
          forgot += ids.length;
          return node.ledger.forget(ids);
        },
      } as Partial<CutLedger>),
    }),
  );
  driven.node.on('fault', ({ message }) => void faults.push(message));
  return { ...driven, wrong, forgot: () => forgot };
}

test('a certified cut that breaks a rule once is executed again with blocks that come anew, and the node goes on', async () => {
  for (let member = 0; member < MEMBERS; member++) await start(`m${member}`, member);
  const id = await mine(nodeOf('m0'));
  await reached(() => nodes().every(isRegistered(id)));
  const { node, forgot } = await startDoubter(id, 1);
  await reached(() => isRegistered(id)(node));
  expect(forgot()).toBe(1);
  expectOneChain();
});

test('a certified cut that breaks a rule again ends the node, which says the rule with both values and writes a file for developers', async () => {
  for (let member = 0; member < MEMBERS; member++) await start(`m${member}`, member);
  const id = await mine(nodeOf('m0'));
  await reached(() => nodes().every(isRegistered(id)));
  const height = nodeOf('m0').chain.block(id)?.registeredHeight as number;
  const { node, wrong, forgot } = await startDoubter(id, 2);
  await until(() => faults.length > 0, LIMIT);
  expect(forgot()).toBe(1);
  expect(node.chain.head().height).toBe(height - 1);
  const path = join(network.directory, 'doubter', REFUTED_CUT_FILE);
  expect(faults).toEqual([expect.stringContaining(`cut ${height}, which breaks a rule here: ${wrong}`)]);
  expect(faults[0]).toContain(path);
  expect(faults[0]).toContain('Update this node');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const { chain } = nodeOf('m0');
  const written = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  expect(written).toMatchObject({
    reason: wrong,
    chain_id: toHex(chain.chainId),
    head: { height: height - 1, cut_id: toHex(chain.cut(height - 1)?.cutId as Bytes) },
    cut: { height, cut_id: toHex(chain.cut(height)?.cutId as Bytes) },
    certificate: expect.stringMatching(/^[0-9a-f]+$/),
    blocks: [
      { id: toHex(id), header: toHex(chain.block(id)?.header as Bytes), body: toHex(chain.blockBody(id) as Bytes) },
    ],
  });
});
