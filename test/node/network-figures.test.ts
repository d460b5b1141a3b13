/** Metrics of who is connected, by the names that the docs and the alerts give: peers and neighbours of the overlay are counted apart, and a node without peers says so. */
import { expect, test } from 'vitest';
import type { FullNode } from '../../node/full-node.ts';
import type { PeerView } from '../../node/network/open-network.ts';
import { nodeMetrics } from '../../node/node-metrics.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';

const view = (peers: number, bytes: number): PeerView =>
  ({
    figures: () => ({ peers: Array(peers).fill({}), receivedBytes: bytes, sentBytes: 2 * bytes, barred: 1 }),
    queuedCuts: () => 5,
    queuedBlocks: () => 6,
  }) as unknown as PeerView;

test('without peers every metric of peers is there and is 0', async () => {
  const metrics = new Metrics('svc_node');
  nodeMetrics(metrics, { version: '1', network: 'development' });
  const lines = (await metrics.text()).split('\n');
  for (const name of [
    'peers',
    'best_peer_height',
    'p2p_received_bytes_total',
    'p2p_sent_bytes_total',
    'p2p_queued_cuts',
    'p2p_queued_blocks',
    'p2p_barred',
  ])
    expect(lines).toContain(`svc_node_${name} 0`);
});

test('svc_node_peers counts peers alone, svc_node_overlay_neighbours connections of the overlay', async () => {
  const metrics = new Metrics('svc_node');
  const node = nodeMetrics(metrics, { version: '1', network: 'development' });
  expect(await metrics.text()).not.toMatch(/svc_node_overlay_neighbours/);
  node.watch({
    on: () => () => undefined,
    mempool: { count: 0 },
    chain: { sync: () => ({ synced: true, height: 78, peers: { bestPeerHeight: 77 } }), waitingBlocks: () => [] },
  } as unknown as FullNode);
  let neighbours = 3;
  node.consensus(() => neighbours);
  node.peers(view(2, 10));
  const before = await metrics.text();
  for (const line of [
    'svc_node_peers 2',
    'svc_node_overlay_neighbours 3',
    'svc_node_best_peer_height 77',
    'svc_node_p2p_received_bytes_total 10',
    'svc_node_p2p_sent_bytes_total 20',
    'svc_node_p2p_queued_cuts 5',
    'svc_node_p2p_queued_blocks 6',
    'svc_node_p2p_barred 1',
  ])
    expect(before.split('\n')).toContain(line);
  neighbours = 0;
  const after = await metrics.text();
  expect(after).toMatch(/^svc_node_overlay_neighbours 0$/m);
  // Counted from what was counted before, not twice.
  expect(after).toMatch(/^svc_node_p2p_received_bytes_total 10$/m);
});
