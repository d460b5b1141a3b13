/** Peers that spoil gossip for others: by announcing first what they do not deliver, by answers that are too long to be read, by answering late. */
import { createHash, randomBytes } from 'node:crypto';
import { multiaddr } from '@multiformats/multiaddr';
import { afterEach, expect, test } from 'vitest';
import { encodeBatch, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { toHex } from '../../protocol/bytes.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { pause, RawPeer, topicName } from '../network/raw-peer.ts';
import { RelayHost, wireOf } from '../network/relay-host.ts';
import { until } from '../until.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
});

const SALT = new Uint8Array(8);
const wires = Array.from({ length: 60 }, (_, i) => wireOf(i));
const byId = new Map(wires.map((wire) => [toHex(transactionIdOfWire(wire)), wire]));
const announcing = (...indexes: number[]) =>
  encodeBatch(
    SALT,
    indexes.map((i) => transactionIdOfWire(wires[i] as Uint8Array)),
  );

async function victim(): Promise<RelayHost> {
  const host = new RelayHost();
  open.push(host);
  await host.start();
  return host;
}

/** It has every transaction, and answers after a while. */
async function honest(of: RelayHost, millis = 0): Promise<RawPeer> {
  const peer = await RawPeer.open(of.chainId, {
    relay: async (question) => {
      if (question.type !== 'transactions') return undefined;
      await pause(millis);
      return encodeWires(question.ids.map((id) => byId.get(toHex(id))));
    },
  });
  open.push(peer);
  await peer.join(of.address);
  return peer;
}

async function hostile(of: RelayHost, millis = 0): Promise<RawPeer> {
  const peer = await RawPeer.open(of.chainId, {
    relay: async () => {
      await pause(millis);
      return undefined;
    },
  });
  open.push(peer);
  await peer.join(of.address);
  return peer;
}

/** Until gossip between the two goes. */
async function meshed(of: RelayHost, ...peers: RawPeer[]): Promise<void> {
  await until(() => of.joined.length >= peers.length);
  await until(() => peers.every((peer) => peer.isHeard('transactions')));
}

test('a peer that announces first and does not deliver keeps nothing from a node: the next announcer is asked', async () => {
  const node = await victim();
  const [liar, source] = [await hostile(node), await honest(node)];
  await meshed(node, liar, source);
  await liar.publish('transactions', announcing(0));
  await until(() => liar.asked.includes('relay transactions'));
  await pause(200);
  await source.publish('transactions', announcing(0));
  await until(() => node.pool.size === 1);
  // Another batch with the same transaction, so that it is another message.
  await liar.publish('transactions', announcing(1, 2));
  await source.publish('transactions', announcing(2, 1));
  await until(() => node.pool.size === 3);
  expect(node.blamed).toEqual([]);
});

test('nor does a peer that announces before it has said hello', async () => {
  const node = await victim();
  const source = await honest(node);
  await meshed(node, source);
  const stranger = await RawPeer.open(node.chainId);
  open.push(stranger);
  await stranger.host.dial(multiaddr(node.address));
  await until(() => stranger.isHeard('transactions'));
  await stranger.publish('transactions', announcing(0));
  await pause(200);
  await source.publish('transactions', announcing(0));
  await until(() => node.pool.size === 1);
});

test('what comes without a hello, or beyond what a peer may send, leaves nothing behind', async () => {
  const node = await victim();
  const [source, flooding] = [await honest(node), await hostile(node)];
  await meshed(node, source, flooding);
  const stranger = await RawPeer.open(node.chainId);
  open.push(stranger);
  await stranger.host.dial(multiaddr(node.address));
  await until(() => stranger.isHeard('transactions'));
  const topic = topicName(node.chainId, 'transactions');
  const flood = ({ host }: RawPeer) => {
    const { gossip } = host.services;
    const messages = Array.from({ length: 4_000 }, () => ({ topic, data: randomBytes(8) }));
    const { sendRpc } = gossip as unknown as { sendRpc(peer: string, rpc: object): boolean };
    for (const peer of gossip.getSubscribers(topic))
      sendRpc.call(gossip, peer.toString(), { subscriptions: [], messages });
  };
  const before = node.host.figures().receivedBytes;
  flood(stranger);
  await until(() => node.host.figures().receivedBytes > before + 4_000 * 50);
  await source.publish('transactions', announcing(0));
  await until(() => node.pool.size === 1);
  expect(node.host.figures().rememberedMessages).toBeLessThan(10);
  flood(flooding);
  await until(() => node.host.figures().peers.length === 1);
  expect(node.host.figures().rememberedMessages).toBeLessThan(3_000);
  expect(node.blamed.every(({ peer }) => peer === flooding.name)).toBe(true);
});

test('an announcer that does not answer delays by a moment, not by its whole time', async () => {
  const node = await victim();
  const [liar, source] = [await hostile(node, 30_000), await honest(node)];
  await meshed(node, liar, source);
  await liar.publish('transactions', announcing(0));
  await until(() => liar.asked.length > 0);
  await source.publish('transactions', announcing(0));
  await until(() => node.pool.size === 1);
});

test('a peer that announces again and again what it does not have loses score', async () => {
  const node = await victim();
  const liar = await hostile(node);
  await meshed(node, liar);
  for (let i = 0; i < 12; i++)
    await liar.publish(
      'transactions',
      encodeBatch(
        SALT,
        Array.from({ length: 256 }, () => randomBytes(48)),
      ),
    );
  await until(() => node.blamed.some(({ peer, fault }) => peer === liar.name && fault === 'undelivered'));
});

const ANSWER_MILLIS = 300;

test('a peer that relays many small batches is asked for all of them together and is never blamed', async () => {
  const node = await victim();
  const source = await honest(node, ANSWER_MILLIS);
  await meshed(node, source);
  const began = performance.now();
  for (let i = 0; i < 60; i++) await source.publish('transactions', announcing(i));
  await until(() => node.pool.size === 60);
  expect(node.blamed).toEqual([]);
  // One question at a time, each for all that was announced meanwhile.
  expect(source.asked.length).toBeLessThan(2 + (performance.now() - began) / ANSWER_MILLIS);
});

test('more than fits into one message of gossip comes in parts, and gossip goes on', async () => {
  const chainId = randomBytes(48);
  const topic = topicName(chainId, 'transactions');
  const source = await RawPeer.open(chainId, {}, { listen: ['/ip4/127.0.0.1/tcp/0'] });
  const other = await RawPeer.open(chainId);
  open.push(source, other);
  const batches = Array.from({ length: 150 }, () => randomBytes(2 + 256 * 48));
  for (const batch of batches) await source.publish('transactions', batch);
  const got = new Set<string>();
  other.host.services.gossip.topicValidators.set(topic, (_, { data }) => {
    got.add(toHex(data));
    return 'accept' as never;
  });
  await other.host.dial(source.host.getMultiaddrs());
  const gossip = other.host.services.gossip as unknown as { sendRpc(peer: string, rpc: object): boolean };
  await until(() => source.isHeard('transactions') && other.isHeard('transactions'));
  const messageIDs = batches.map((data) => createHash('sha256').update(topic).update(data).digest().subarray(0, 20));
  const control = { ihave: [], iwant: [{ messageIDs }], graft: [], prune: [], idontwant: [] };
  gossip.sendRpc(source.name, { subscriptions: [], messages: [], control });
  await until(() => got.size >= 20);
  // Gossip goes on.
  const last = randomBytes(60);
  await source.publish('transactions', last);
  await until(() => got.has(toHex(last)));
});

test('a connection whose gossip ended is closed, so that it can be made anew', async () => {
  const node = await victim();
  const peer = await honest(node);
  await meshed(node, peer);
  const gossip = peer.host.services.gossip as unknown as {
    streamsOutbound: Map<string, { rawStream: { abort(error: Error): void } }>;
  };
  for (const stream of gossip.streamsOutbound.values()) stream.rawStream.abort(new Error('gone'));
  await until(() => node.host.figures().peers.length === 0);
});
