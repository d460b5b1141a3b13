/**
 * The metrics `svc_node_*` of the specification, all of them from the start: without peers theirs are zero. Metrics
 * that only a validator has are absent elsewhere.
 */
import type { Metrics } from '../runtime/metrics/metrics.ts';
import type { CutStep } from './chain/cut-clock.ts';
import { CONSENSUS_COUNTS, type ConsensusCount, type ConsensusFigures } from './consensus/driver/figures.ts';
import type { FullNode } from './full-node.ts';
import type { PeerView } from './network/open-network.ts';
import type { Seat } from './validator/seat-watch.ts';
import { STANDINGS } from './validator/validator-state.ts';

export type NodeMetrics = {
  cutStep(step: CutStep, seconds: number): void;
  submission(kind: 'template' | 'block' | 'transaction', result: string): void;
  watch(node: FullNode): void;
  /** Present if cuts are made by separate validators. */
  consensus(neighbours: () => number): ConsensusFigures;
  /** Present on a node with a consensus key. */
  validator(seat: () => Seat): void;
  /** Zero without. */
  peers(view: PeerView): void;
};

const STEP_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export function nodeMetrics(
  metrics: Metrics,
  info: { readonly version: string; readonly network: string },
): NodeMetrics {
  metrics
    .gauge('svc_node_info', { help: 'Version and network of the node', labels: ['version', 'network'] })
    .set(1, info);
  const height = metrics.gauge('svc_node_finalized_height', { help: 'Height of the last finalized cut' });
  const synced = metrics.gauge('svc_node_synced', { help: '1 when the node is synced' });
  const cuts = metrics.counter('svc_node_cuts_total', { help: 'Cuts finalized since the start' });
  const registered = metrics.counter('svc_node_registered_blocks_total', { help: 'Work blocks registered' });
  const executed = metrics.counter('svc_node_executed_blocks_total', {
    help: 'Work blocks of which a transaction was executed',
  });
  const rewards = metrics.counter('svc_node_paid_rewards_total', { help: 'Work rewards paid' });
  const submissions = metrics.counter('svc_node_submissions_total', {
    help: 'Templates, blocks and transactions by result',
    labels: ['kind', 'result'],
  });
  const waiting = metrics.gauge('svc_node_mempool_transactions', { help: 'Transactions that wait' });
  const pool = metrics.gauge('svc_node_work_pool_blocks', { help: 'Work blocks that wait for a cut' });
  const steps = metrics.histogram('svc_node_cut_step_seconds', {
    help: 'Time of the steps of a cut',
    labels: ['step'],
    buckets: STEP_SECONDS,
  });
  const connected = metrics.gauge('svc_node_peers', { help: 'Peers that are connected' });
  const best = metrics.gauge('svc_node_best_peer_height', { help: 'Highest cut that a peer proved' });
  const received = metrics.counter('svc_node_p2p_received_bytes_total', { help: 'Bytes from peers' });
  const sent = metrics.counter('svc_node_p2p_sent_bytes_total', { help: 'Bytes to peers' });
  const queuedCuts = metrics.gauge('svc_node_p2p_queued_cuts', { help: 'Cuts of peers that wait for execution' });
  const queuedBlocks = metrics.gauge('svc_node_p2p_queued_blocks', { help: 'Blocks of peers that are looked at' });
  const barred = metrics.gauge('svc_node_p2p_barred', { help: 'Peers and addresses that are barred' });
  for (const gauge of [connected, best, queuedCuts, queuedBlocks, barred]) gauge.set(0);
  for (const counter of [received, sent]) counter.add(0);
  return {
    cutStep: (step, seconds) => steps.observe(seconds, { step }),
    consensus(neighbours) {
      const counters = new Map(
        Object.entries(CONSENSUS_COUNTS).map(([what, [name, help]]) => [what, metrics.counter(name, { help })]),
      );
      const neighbouring = metrics.gauge('svc_node_overlay_neighbours', {
        help: 'Nodes at the other end of the overlay of validators',
      });
      metrics.beforeScrape(() => neighbouring.set(neighbours()));
      return {
        step: (step, seconds) => steps.observe(seconds, { step }),
        count: (what: ConsensusCount) => counters.get(what)?.add(1),
      };
    },
    validator(seat) {
      const seated = metrics.gauge('svc_node_validator_seat', { help: '1 while the validator has a seat' });
      const standings = metrics.gauge('svc_node_validator_standing', {
        help: '1 for the state of the validator: a member, or why it has no seat',
        labels: ['standing'],
      });
      const age = metrics.gauge('svc_node_validator_heartbeat_age_epochs', {
        help: 'Epochs since the last final heartbeat of the validator; it lapses with more than two',
      });
      metrics.beforeScrape(() => {
        const { standing: now, hasSeat, heartbeatAge } = seat();
        seated.set(hasSeat ? 1 : 0);
        for (const standing of Object.keys(STANDINGS)) standings.set(standing === now ? 1 : 0, { standing });
        if (heartbeatAge !== undefined) age.set(heartbeatAge);
      });
    },
    peers(view) {
      let counted = { received: 0, sent: 0 };
      metrics.beforeScrape(() => {
        const { peers, receivedBytes, sentBytes, barred: count } = view.figures();
        connected.set(peers.length);
        received.add(receivedBytes - counted.received);
        sent.add(sentBytes - counted.sent);
        counted = { received: receivedBytes, sent: sentBytes };
        barred.set(count);
        queuedCuts.set(view.queuedCuts());
        queuedBlocks.set(view.queuedBlocks());
      });
    },
    submission: (kind, result) => submissions.add(1, { kind, result }),
    watch(node) {
      node.on('cut', (effects) => {
        cuts.add(1);
        registered.add(effects.registered.length);
        const blocks = effects.transactions
          .filter(({ outcome }) => outcome === 'executed')
          .map(({ blockId }) => blockId);
        executed.add(new Set(blocks).size);
        rewards.add(effects.rewards.length);
      });
      metrics.beforeScrape(() => {
        const sync = node.chain.sync();
        height.set(sync.height);
        synced.set(sync.synced ? 1 : 0);
        best.set(sync.peers?.bestPeerHeight ?? 0);
        waiting.set(node.mempool.count);
        pool.set([...node.chain.waitingBlocks()].length);
      });
    },
  };
}
