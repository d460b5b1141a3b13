/** Frames of the multiplexer that cost their sender 12 bytes each: who sends them without end loses its place, with or without a hello. */
import { multiaddr } from '@multiformats/multiaddr';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RawPeer } from '../network/raw-peer.ts';
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

test.each([true, false])('a peer that opens streams without end is barred (hello: %s)', async (hasHello) => {
  const connection = hasHello
    ? await stranger.join(node.address)
    : await stranger.host.dial(multiaddr(node.address), { signal: AbortSignal.timeout(60_000) });
  const { muxer } = connection as unknown as { muxer: { maConn: { send(bytes: Uint8Array): boolean } } };
  for (let i = 0; i < 20; i++) muxer.maConn.send(opening(1_000));
  await until(() => node.blamed.length > 0);
  expect(node.blamed).toMatchObject([{ peer: stranger.name, fault: 'frames' }]);
  await until(() => node.host.figures().connections === 0 && connection.status !== 'open');
  expect(node.host.figures().barred).toBe(1);
});
