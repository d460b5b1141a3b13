/** What a node has by another way, for example by sync or its own miner, while or after a peer's announcement of it waited here in vain, is handed on all the same. */
import { expect, onTestFinished, test } from 'vitest';
import type { Finding } from '../../node/network/thread/host-types.ts';
import { toHex } from '../../protocol/bytes.ts';
import { until } from '../until.ts';
import { RawPeer } from './raw-peer.ts';
import { RelayHost } from './relay-host.ts';

const message = (name: string) => Buffer.from(name.padEnd(400));

test.each(['open', 'given up'] as const)(
  'an announcement that is %s is handed on once this node has it itself',
  async (how) => {
    const judged: string[] = [];
    const node = new RelayHost({
      gossip: async (_peer, _topic, data) => {
        judged.push(toHex(data));
        return how === 'open' ? await new Promise<Finding>(() => undefined) : 'ignore';
      },
    });
    await node.start();
    onTestFinished(() => node.close());
    const [stranger, neighbour] = [await RawPeer.open(node.chainId), await RawPeer.open(node.chainId)];
    const got: string[] = [];
    neighbour.host.services.gossip.addEventListener('message', ({ detail }) => void got.push(toHex(detail.data)));
    for (const peer of [stranger, neighbour]) {
      onTestFinished(() => peer.close());
      await peer.join(node.address);
    }
    await until(() => stranger.isHeard('cuts'));
    let probes = 0;
    // Until the neighbour hears this node.
    await until(async () => {
      await node.host.publish('cuts', message(`probe ${++probes}`));
      return got.length > 0;
    });
    got.length = 0;
    const cut = message('a cut');
    await stranger.publish('cuts', cut);
    await until(() => judged.includes(toHex(cut)));
    expect(got).not.toContain(toHex(cut));
    await node.host.publish('cuts', cut);
    await until(() => got.includes(toHex(cut)));
    // Once, however often it says so.
    await node.host.publish('cuts', cut);
    await node.host.publish('cuts', message('another'));
    await until(() => got.includes(toHex(message('another'))));
    expect(got.filter((data) => data === toHex(cut))).toHaveLength(1);
  },
);
