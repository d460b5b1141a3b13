/** Peers over QUIC alone: they sync, have the bounds of TCP, and bear what strangers send to a UDP port. */
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { multiaddr } from '@multiformats/multiaddr';
import { afterEach, beforeEach, expect, onTestFinished } from 'vitest';
import { INBOUND_LIMITS } from '../../node/network/peers/inbound-limits.ts';
import { quietLog } from '../quiet-log.ts';
import { headOf, NetBed, type NetNode, until } from './peers.ts';
import { absenceTest, client, freeUdpPort, halfHandshakes, malformed, quicTest, send } from './quic.ts';
import { RawPeer } from './raw-peer.ts';

const ANY = '/ip4/127.0.0.1/udp/0/quic-v1';
let bed: NetBed;
beforeEach(() => {
  bed = new NetBed();
});
afterEach(() => bed.close());

const at = ({ view }: NetNode): string => view.addresses[0] as string;
const portOf = (node: NetNode): number => Number(/\/udp\/(\d+)\//.exec(at(node))?.[1]);
const height = ({ node }: NetNode): number => node.chain.head().height;

absenceTest();

quicTest('two nodes that share nothing but QUIC sync and follow', async () => {
  const source = await bed.start('source', { listen: [ANY] });
  expect(source.view.addresses).toHaveLength(1);
  expect(at(source)).toMatch(/^\/ip4\/127\.0\.0\.1\/udp\/\d+\/quic-v1\/p2p\//);
  await bed.seal(source, 60, 2);
  const fresh = await bed.start('fresh', { listen: [], bootstrap: [at(source)], follows: true });
  await until(() => height(fresh) === 60 && fresh.node.chain.sync().synced);
  for (let i = 1; i <= 3; i++) {
    await bed.seal(source, 1, 2);
    await until(() => height(fresh) === 60 + i);
  }
  expect(headOf(fresh)).toBe(headOf(source));
  await until(() => fresh.view.figures().peers.every(({ address }) => address.includes('/quic-v1')));
  // What travels is counted as over TCP.
  await until(() => fresh.view.figures().receivedBytes > 10_000 && source.view.figures().sentBytes > 10_000);
});

quicTest('a name is listened on and dialled', async () => {
  const source = await bed.start('source', { listen: ['/dns4/localhost/udp/0/quic-v1'] });
  const fresh = await bed.start('fresh', {
    listen: [],
    bootstrap: [at(source).replace('/ip4/127.0.0.1/', '/dns4/localhost/')],
    follows: true,
  });
  await bed.seal(source, 3);
  await until(() => height(fresh) === 3);
});

quicTest('handshakes that stop half way do not hold up others, nor the end of the node', async () => {
  const source = await bed.start('source', { listen: [ANY] });
  const dialler = await client();
  await send(await halfHandshakes(60), portOf(source));
  // One at a time they would take ten seconds each.
  await dialler.outboundConnection('127.0.0.1', portOf(source));
  await source.close();
});

quicTest('packets that mean nothing change nothing', async () => {
  const errors: unknown[] = [];
  const log = { ...quietLog, error: (message: string, fields: unknown) => void errors.push([message, fields]) };
  const source = await bed.start('source', { listen: [ANY] }, () => ({ log }));
  const fresh = await bed.start('fresh', { listen: [], bootstrap: [at(source)], follows: true });
  await until(() => fresh.view.figures().peers.length === 1);
  const begun = await halfHandshakes(8);
  for (let round = 0; round < 10; round++) await send(malformed(500, begun), portOf(source));
  await bed.seal(source, 3);
  await until(() => height(fresh) === 3);
  expect(errors).toEqual([]);
  await (await client()).outboundConnection('127.0.0.1', portOf(source));
});

quicTest('a thread of the network that fails ends in order, and is started again', async () => {
  const workers: Worker[] = [];
  const note = (worker: Worker) => workers.push(worker);
  process.on('worker', note);
  onTestFinished(() => void process.off('worker', note));
  const port = await freeUdpPort();
  const source = await bed.start('source', { listen: [`/ip4/127.0.0.1/udp/${port}/quic-v1`] });
  const [thread] = workers as [Worker];
  // It has a connection, and many native calls wait in it.
  const first = await rawPeer(source);
  await first.join(at(source));
  thread.postMessage(undefined);
  await new Promise((resolve) => thread.once('exit', resolve));
  await until(() => source.view.figures().peers.length === 0);
  const joining = await rawPeer(source);
  await until(async () => (await joining.join(at(source)).catch(() => undefined)) !== undefined);
});

const rawPeer = async (source: NetNode): Promise<RawPeer> => {
  const peer = await RawPeer.open(source.node.chain.chainId, {}, { bootstrap: [at(source)] });
  onTestFinished(() => peer.close());
  return peer;
};

quicTest('one address has as many places as over TCP, and one that says no hello none', async () => {
  const source = await bed.start('source', { listen: [ANY] }, () => ({ countsNear: true }));
  const peers = await Promise.all(Array.from({ length: INBOUND_LIMITS.perAddress + 1 }, () => rawPeer(source)));
  const joined = await Promise.allSettled(peers.map((peer) => peer.join(at(source))));
  const [kept, refused] = ['fulfilled', 'rejected'].map((of) => joined.filter(({ status }) => status === of).length);
  expect({ kept, refused }).toEqual({ kept: INBOUND_LIMITS.perAddress, refused: 1 });
  const silent = await rawPeer(await bed.start('other', { listen: [ANY] }));
  const other = bed.running.at(-1) as NetNode;
  const connection = await silent.host.dial(multiaddr(at(other)));
  await once(connection as unknown as EventTarget & { once: never }, 'close' as never);
  expect(connection.status).not.toBe('open');
});
