/** A peer that leaves before what it sent is judged: it is barred with its address all the same, and cannot come again under another name. */
import { expect, onTestFinished, test } from 'vitest';
import { RawPeer } from '../network/raw-peer.ts';
import { RelayHost } from '../network/relay-host.ts';
import { until } from '../until.ts';

test('the address of a peer that has left is barred for what it did before', async () => {
  const left: string[] = [];
  const node = new RelayHost({ left: async (peer: string) => void left.push(peer) } as never);
  // Loopback counts like every other address.
  await node.start({ countsNear: true });
  onTestFinished(() => node.close());
  const [liar, again] = [await RawPeer.open(node.chainId), await RawPeer.open(node.chainId)];
  for (const peer of [liar, again]) onTestFinished(() => peer.close());
  const connection = await liar.join(node.address);
  await connection.close();
  await until(() => left.includes(liar.name));
  node.host.fault(liar.name, 'false_proof', 'a certificate with false votes');
  // Its name and its address.
  expect(node.host.figures().barred).toBe(2);
  await expect(again.join(node.address)).rejects.toThrow();
});
