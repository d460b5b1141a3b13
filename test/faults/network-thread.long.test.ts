/** The thread of the network ends, in whatever way: the node gets its peers back. */
import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { PeerNetwork } from '../../node/network/peer-network.ts';
import { ReleaseWatch } from '../../node/network/peers/release-watch.ts';
import type { PeerInfo } from '../../node/network/thread/host-types.ts';
import { hostSettings } from '../network/raw-peer.ts';
import { RelayHost } from '../network/relay-host.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

test('a thread that ends without an error is started again, also where the first attempts fail', async () => {
  const workers: Worker[] = [];
  const note = (worker: Worker) => workers.push(worker);
  process.on('worker', note);
  const source = new RelayHost();
  await source.start();
  const joined: string[] = [];
  const left: string[] = [];
  let listen = ['/ip4/127.0.0.1/tcp/0'];
  const network = new PeerNetwork(
    () => hostSettings(source.chainId, { bootstrap: [source.address], listen }),
    {
      joined: (peer) => void joined.push(peer),
      left: (peer) => void left.push(peer),
      refused: () => undefined,
      serve: async () => undefined,
      gossip: async () => 'ignore',
      remember: () => undefined,
    },
    quietLog,
  );
  try {
    await network.start();
    await until(() => joined.length === 1);
    // An address that this machine does not have.
    listen = ['/ip4/192.0.2.1/tcp/1'];
    await workers[0]?.terminate();
    await until(() => workers.length >= 2);
    expect(left).toEqual(joined);
    listen = [];
    await until(() => joined.length === 2);
  } finally {
    process.off('worker', note);
    await network.close();
    await source.close();
  }
});

const info = (direction: PeerInfo['direction'], address: string, release = '9.0.0'): PeerInfo => ({
  direction,
  named: false,
  address: `/ip4/${address}/tcp/1`,
  release,
  height: 0,
});

test('a peer of newer rules counts though it was refused, and is forgotten; one stranger, or one of older rules, does not', () => {
  let now = 0;
  const watch = new ReleaseWatch({ release: '0.2.0', ruleSet: 2 }, () => now);
  const refused = (direction: PeerInfo['direction'], address: string, ruleSet: number) =>
    watch.refused(address, { ...info(direction, address), ruleSet });
  const says = () => [watch.isAnnounced(), watch.hasNewRules()];
  refused('outbound', '8.8.8.8', 1);
  refused('inbound', '1.1.1.1', 3);
  refused('inbound', '2.2.2.2', 3);
  expect(says()).toEqual([false, false]);
  refused('inbound', '3.3.3.3', 3);
  expect(says()).toEqual([true, true]);
  now += 10_800_000;
  expect(says()).toEqual([false, false]);
  refused('outbound', '4.4.4.4', 3);
  // It calls back.
  refused('inbound', '4.4.4.4', 3);
  expect(says()).toEqual([true, true]);
});

test('one stranger’s release announces no update', () => {
  const watch = new ReleaseWatch({ release: '0.1.0', ruleSet: 1 }, () => 0);
  for (let i = 0; i < 8; i++) watch.joined(`stranger ${i}`, info('inbound', `66.6.6.${i}`));
  watch.joined('old', info('outbound', '8.8.8.8', '0.1.0'));
  expect(watch.isAnnounced()).toBe(false);
  watch.joined('chosen', info('outbound', '8.8.4.4'));
  expect(watch.isAnnounced()).toBe(true);
  watch.left('chosen');
  expect(watch.isAnnounced()).toBe(false);
  for (const address of ['1.1.1.1', '2.2.2.2']) watch.joined(address, info('inbound', address));
  expect(watch.isAnnounced()).toBe(true);
});
