/** A stranger that comes again and again as somebody else: nothing of those that left stays in memory. */
import { randomBytes } from 'node:crypto';
import { generateKeyPair } from '@libp2p/crypto/keys';
import { peerIdFromPrivateKey } from '@libp2p/peer-id';
import { expect, onTestFinished, test } from 'vitest';
import { RawPeer } from '../network/raw-peer.ts';
import { until } from '../until.ts';

const IDENTITIES = 5;
const chainId = randomBytes(48);

async function opened(listen: readonly string[] = []): Promise<RawPeer> {
  const peer = await RawPeer.open(chainId, {}, { listen });
  onTestFinished(() => peer.close());
  return peer;
}

test('what a peer said of itself is forgotten when it has left', async () => {
  const { host } = await opened(['/ip4/127.0.0.1/tcp/0']);
  const { peerStore, services } = host;
  const { score } = services.gossip as unknown as { score: { peerStats: ReadonlyMap<string, unknown> } };
  const stays = await opened();
  await stays.host.dial(host.getMultiaddrs());
  for (let i = 0; i < IDENTITIES; i++) {
    const peer = await opened();
    await peer.host.dial(host.getMultiaddrs());
    await until(async () => score.peerStats.has(peer.name) && (await peerStore.has(peer.host.peerId)));
    await peer.close();
  }
  // One whose words were still being checked when it left.
  const late = peerIdFromPrivateKey(await generateKeyPair('Ed25519'));
  await peerStore.merge(late, { metadata: { said: Uint8Array.of(1) } });
  const known = async () => (await peerStore.all()).map(({ id }) => id.toString());
  expect(await known()).toHaveLength(1 + IDENTITIES + 1);
  await until(async () => (await known()).length <= 1 && score.peerStats.size <= 1);
  expect([await known(), [...score.peerStats.keys()]]).toEqual([[stays.name], [stays.name]]);
  expect(await peerStore.has(host.peerId)).toBe(true);
});
