/** Peers that the operator named are known as such, whichever side connected first: a new node looks at their snapshots before those of strangers. */
import { multiaddr } from '@multiformats/multiaddr';
import { afterEach, expect, test } from 'vitest';
import { encodeHello, MAX_HELLO_BYTES } from '../../node/network/peers/hello.ts';
import { answerStream } from '../../node/network/thread/asking.ts';
import type { NodeSide, PeerInfo } from '../../node/network/thread/host-types.ts';
import { RULE_SET } from '../../protocol/transactions/transaction.ts';
import { freePort } from '../../runtime/free-port.ts';
import { until } from '../until.ts';
import { Forwarder } from './forwarder.ts';
import { RawPeer } from './raw-peer.ts';
import { RelayHost } from './relay-host.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) await part.close();
});

async function meeting(bootstrap: (peer: string, port: number) => string) {
  const said: (string | Pick<PeerInfo, 'direction' | 'named'>)[] = [];
  // Calls of the other thread: each has an answer.
  const node = new RelayHost({
    joined: async (_: string, { direction, named }: PeerInfo) => void said.push({ direction, named }),
    left: async () => void said.push('left'),
  } as Partial<NodeSide>);
  const peer = await RawPeer.open(node.chainId, {}, { listen: ['/ip4/127.0.0.1/tcp/0'] });
  const hello = encodeHello({ chainId: node.chainId, ruleSet: RULE_SET, release: '0.1.0', height: 0 });
  await peer.host.handle('/svc/hello/1', (stream) =>
    answerStream(stream, { bytes: MAX_HELLO_BYTES, millis: 60_000 }, async () => hello),
  );
  open.push(node, peer);
  const port = await freePort();
  await node.start({ bootstrap: [bootstrap(peer.name, port)] });
  await peer.join(node.address);
  await until(() => said.length > 0);
  // Only now it can be reached where the operator says it is.
  const own = multiaddr(peer.host.getMultiaddrs()[0] as never).toString();
  open.push(await Forwarder.open(port, Number(own.split('/')[4])));
  return said;
}

test('a peer whose identity the operator named counts as named when it comes first', async () => {
  const said = await meeting((peer, port) => `/ip4/127.0.0.1/tcp/${port}/p2p/${peer}`);
  expect(said).toEqual([{ direction: 'inbound', named: true }]);
});

test('one of which the operator named the address alone counts as named as soon as it is reached there', async () => {
  const said = await meeting((_, port) => `/ip4/127.0.0.1/tcp/${port}`);
  expect(said).toEqual([{ direction: 'inbound', named: false }]);
  await until(() => said.length > 1);
  expect(said.slice(1)).toEqual(['left', { direction: 'outbound', named: true }]);
});

test('a peer that the operator named pays for its own faults only, and not for those of strangers at its address', async () => {
  const node = new RelayHost();
  const [named, stranger] = [
    await RawPeer.open(node.chainId, {}, { listen: ['/ip4/127.0.0.1/tcp/0'] }),
    await RawPeer.open(node.chainId),
  ];
  const hello = encodeHello({ chainId: node.chainId, ruleSet: RULE_SET, release: '0.1.0', height: 0 });
  await named.host.handle('/svc/hello/1', (stream) =>
    answerStream(stream, { bytes: MAX_HELLO_BYTES, millis: 60_000 }, async () => hello),
  );
  open.push(node, named, stranger);
  // Loopback counts like every other address.
  await node.start({ bootstrap: [`${named.host.getMultiaddrs()[0]}`], countsNear: true });
  await stranger.join(node.address);
  await until(() => node.host.figures().peers.length === 2);
  for (let i = 0; i < 9; i++) node.host.fault(stranger.name, 'unanswered', 'no answer');
  node.host.fault(named.name, 'unanswered', 'no answer');
  const lost = () => new Map(node.host.figures().peers.map(({ peer, lostScore }) => [peer, lostScore]));
  expect(lost()).toEqual(
    new Map([
      [named.name, 10],
      [stranger.name, 90],
    ]),
  );
  // Points come back with each millisecond, so ten of ten would be a little too few.
  node.host.fault(stranger.name, 'malformed', 'no answer at all');
  await until(() => lost().size === 1);
  expect(lost()).toEqual(new Map([[named.name, 10]]));
});
