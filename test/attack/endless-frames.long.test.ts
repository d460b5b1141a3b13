/** Frames that cost their sender 12 bytes each, of the multiplexer, or one byte, of gossip: who sends them without end loses its place, with or without a hello. */
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { Connection, Stream, StreamMuxer } from '@libp2p/interface';
import { multiaddr } from '@multiformats/multiaddr';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask } from '../../node/network/thread/asking.ts';
import { insideOf } from '../../node/network/thread/gossip-rpc.ts';
import { PEERS_ANSWER_BYTES, PEERS_PROTOCOL } from '../../node/network/thread/peer-exchange.ts';
import { RawPeer, topicName } from '../network/raw-peer.ts';
import { RelayHost } from '../network/relay-host.ts';
import { until } from '../until.ts';

let node: RelayHost;
let stranger: RawPeer;
beforeEach(async () => {
  node = new RelayHost();
  await node.start();
  stranger = await RawPeer.open(node.chainId);
});
afterEach(async () => {
  await stranger.close();
  await node.close();
});

/** Each opens another stream. */
function opening(count: number): Uint8Array {
  const frames = Buffer.alloc(12 * count);
  for (let i = 0; i < count; i++) {
    const [windowUpdate, syn] = [1, 1];
    frames.writeUInt8(windowUpdate, 12 * i + 1);
    frames.writeUInt16BE(syn, 12 * i + 2);
    frames.writeUInt32BE(10_001 + 2 * i, 12 * i + 4);
  }
  return frames;
}

const connected = (hasHello: boolean) =>
  hasHello
    ? stranger.join(node.address)
    : stranger.host.dial(multiaddr(node.address), { signal: AbortSignal.timeout(60_000) });

async function isBarred(connection: Connection): Promise<void> {
  await until(() => node.blamed.length > 0);
  expect(node.blamed).toMatchObject([{ peer: stranger.name, fault: 'frames' }]);
  await until(() => node.host.figures().connections === 0 && connection.status !== 'open');
  expect(node.host.figures().barred).toBe(1);
}

test.each([true, false])('a peer that opens streams without end is barred (hello: %s)', async (hasHello) => {
  const connection = await connected(hasHello);
  const { muxer } = connection as unknown as { muxer: { maConn: { send(bytes: Uint8Array): boolean } } };
  // Far more than come through before it is noticed, however slow this machine is.
  for (let i = 0; i < 100; i++) muxer.maConn.send(opening(1_000));
  await isBarred(connection);
});

/** Empty ones, and one that wants no messages, again and again. */
const prune = (topic: string) => {
  const named = Buffer.concat([Buffer.of(0x0a, topic.length), Buffer.from(topic)]);
  return Buffer.concat([Buffer.of(0x1a, named.length + 2, 0x22, named.length), named]);
};

test.each([true, false])('a peer that sends gossip of nothing without end is barred (hello: %s)', async (hasHello) => {
  const connection = await connected(hasHello);
  await until(() => stranger.isHeard('cuts'));
  const frame = prune(topicName(node.chainId, 'cuts'));
  const frames = Buffer.concat([Buffer.of(frame.length), frame, Buffer.alloc(99)]);
  const { streamsOutbound } = insideOf(stranger.host.services.gossip);
  const [stream] = [...streamsOutbound.values()] as { rawStream: Stream }[];
  for (let i = 0; i < 1_000; i++) stream?.rawStream.send(frames);
  await isBarred(connection);
});

/** Protocols that nobody speaks. */
const words = (count: number) => Buffer.from('\u0003/x\n'.repeat(count));

test.each([true, false])('a peer that never settles on a protocol is barred (hello: %s)', async (hasHello) => {
  const connection = await connected(hasHello);
  const { muxer } = connection as unknown as { readonly muxer: StreamMuxer };
  const stream = await muxer.createStream();
  stream.send(Buffer.from('\u0013/multistream/1.0.0\n'));
  stream.send(words(100));
  await isBarred(connection);
});

test('a peer that asks for addresses without end is barred', async () => {
  const connection = await connected(true);
  const limits = { bytes: PEERS_ANSWER_BYTES, millis: 60_000 };
  const one = () => ask(connection, PEERS_PROTOCOL, new Uint8Array(1), limits).catch(() => undefined);
  // Many at a time: one after the other they may be slower, on a busy machine, than a peer may ask.
  while (connection.status === 'open') {
    await Promise.all(Array.from({ length: 20 }, one));
    // A question over a connection that is just ending fails at once, and its end is heard only in another turn of the event loop.
    await turn();
  }
  await isBarred(connection);
});

test('nor can one without a name keep on without end', async () => {
  const [, port] = /\/tcp\/(\d+)/.exec(node.address) as RegExpExecArray;
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  let answers = '';
  socket.on('data', (part: Buffer) => {
    answers += part;
  });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write('\u0013/multistream/1.0.0\n');
  socket.write(words(2_000));
  await closed;
  expect(answers.split('na\n').length).toBeLessThan(100);
});
