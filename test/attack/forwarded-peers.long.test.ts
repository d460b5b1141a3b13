/** A stranger that forwards connections between honest nodes, under addresses that it tells them, and lets nothing through when it likes: its own address pays for it, and not the peer whose name they see. */
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { BARRED_MILLIS } from '../../node/network/peers/peer-score.ts';
import { RawPeer } from '../network/raw-peer.ts';
import { RelayHost } from '../network/relay-host.ts';
import { until } from '../until.ts';

const STRANGER = '127.0.0.2';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) await part.close();
});

/** Leads to a port of this machine, from the address of the stranger. */
async function forwarder(port: number): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port, localAddress: STRANGER });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => [near, far].map((one) => one.destroy()));
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push({
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  return (server.address() as { readonly port: number }).port;
}

test('a peer whose connection a stranger forwarded and held up is not barred where it comes itself', async () => {
  const node = new RelayHost();
  // Loopback counts like every other address.
  await node.start({ countsNear: true });
  const honest = await RawPeer.open(node.chainId);
  open.push(node, honest);
  const [, , , , port, , name] = node.address.split('/');
  const there = `/ip4/127.0.0.1/tcp/${await forwarder(Number(port))}/p2p/${name}`;
  await honest.join(there);
  await until(() => node.host.figures().peers.some(({ address }) => address.includes(STRANGER)));
  for (let i = 0; i < 9; i++) node.host.fault(honest.name, 'unanswered', 'no answer');
  expect(node.host.figures().peers.map(({ lostScore }) => lostScore)).toEqual([90]);
  // What it lost at the other address it did not lose here.
  await honest.host.hangUp(honest.host.getPeers()[0] as never);
  await until(() => node.host.figures().connections === 0);
  await honest.join(node.address);
  await until(() => node.host.figures().peers.length > 0);
  expect(node.host.figures().peers.map(({ lostScore }) => lostScore)).toEqual([0]);
  await honest.host.hangUp(honest.host.getPeers()[0] as never);
  await until(() => node.host.figures().connections === 0);
  await honest.join(there);
  await until(() => node.host.figures().peers.length > 0);
  for (let i = 0; i < 2; i++) node.host.fault(honest.name, 'unanswered', 'no answer');
  await until(() => node.host.figures().connections === 0);
  expect(node.host.figures().barred).toBeGreaterThan(0);
  await expect(honest.join(there)).rejects.toThrow();
  await until(() => honest.host.getConnections().length === 0);
  await honest.join(node.address);
  await until(() => node.host.figures().peers.some(({ peer }) => peer === honest.name));
});

test('a peer that has long been connected pays for its own faults only, and stays when a stranger has its address barred', async () => {
  const now = performance.now.bind(performance);
  let passed = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now() + passed);
  const node = new RelayHost();
  await node.start({ countsNear: true });
  const [honest, stranger] = [await RawPeer.open(node.chainId), await RawPeer.open(node.chainId)];
  open.push({ close: () => vi.restoreAllMocks() }, node, honest, stranger);
  await honest.join(node.address);
  await until(() => honest.isHeard('cuts'));
  passed = BARRED_MILLIS;
  await stranger.join(node.address);
  const lost = () => new Map(node.host.figures().peers.map(({ peer, lostScore }) => [peer, lostScore]));
  await until(() => lost().size === 2);
  for (let i = 0; i < 9; i++) node.host.fault(stranger.name, 'unanswered', 'no answer');
  for (let i = 0; i < 2; i++) node.host.fault(honest.name, 'unanswered', 'no answer');
  expect(lost()).toEqual(
    new Map([
      [honest.name, 20],
      [stranger.name, 90],
    ]),
  );
  node.host.fault(stranger.name, 'malformed', 'no answer at all');
  await until(() => lost().size === 1);
  expect(lost()).toEqual(new Map([[honest.name, 20]]));
});

test('a peer that comes again under a new name has lost what it lost under the one before', async () => {
  const node = new RelayHost();
  await node.start({ countsNear: true });
  const [liar, again] = [await RawPeer.open(node.chainId), await RawPeer.open(node.chainId)];
  open.push(node, liar, again);
  await liar.join(node.address);
  for (let i = 0; i < 4; i++) node.host.fault(liar.name, 'bad_transaction', 'a false signature');
  await liar.host.hangUp(liar.host.getPeers()[0] as never);
  await until(() => node.host.figures().connections === 0);
  await again.join(node.address);
  await until(() => node.host.figures().peers.some(({ peer }) => peer === again.name));
  expect(node.host.figures().peers.map(({ lostScore }) => lostScore)).toEqual([80]);
});
