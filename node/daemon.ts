/**
 * Assembles `svcd run`: lock, verifier, chain, listeners, metrics, in this order, each registered with the shutdown as
 * it starts. All inputs come from options and from the process.
 */
import { join } from 'node:path';
import { createVerifier } from '../kernels/verifier.ts';
import { NETWORKS } from '../protocol/network.ts';
import { steadyMillis, wallMillis } from '../runtime/clock/clock.ts';
import { watchClock } from '../runtime/clock/watched-clock.ts';
import { showListenAddress, type ValuesOf } from '../runtime/command-line/command-line.ts';
import { lockDirectory } from '../runtime/files/directory-lock.ts';
import type { Logger } from '../runtime/log/log.ts';
import { addProcessMetrics, Metrics } from '../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../runtime/metrics/metrics-listener.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import { type PublicApi, startApi } from './api/api.ts';
import { chainRates, nodeSync } from './api/chain-routes.ts';
import { loadIdentity, type NodeIdentity } from './api/identity.ts';
import { CutFeed, CutReader } from './events.ts';
import type { FullNode } from './full-node.ts';
import { listenForMining, type MiningListenerDependencies } from './mining/listener.ts';
import { networkPlan } from './network/network-options.ts';
import { type PeerView, peersDocument } from './network/open-network.ts';
import { nodeMetrics } from './node-metrics.ts';
import type { runOptions } from './node-options.ts';
import { openNode } from './open-node.ts';
import { MinerWatch } from './reports/miner-watch.ts';
import { SyncWatch } from './reports/sync-watch.ts';
import { snapshotPlan } from './snapshot/snapshot-options.ts';
import { validatorPlan } from './validator/validator-options.ts';

const SYNC_LOOK_MILLIS = 1_000;

export type RunValues = ValuesOf<typeof runOptions>;

export type DaemonDependencies = { readonly log: Logger; readonly shutdown: Shutdown; readonly version: string };

export async function runDaemon(values: RunValues, { log, shutdown, version }: DaemonDependencies): Promise<void> {
  const lock = lockDirectory(values.dataDir);
  shutdown.add('data directory lock', () => lock.release());
  const metrics = new Metrics('svc_node');
  if (values.metricsBind !== undefined) addProcessMetrics(metrics, version);
  const figures = nodeMetrics(metrics, { version, network: values.network });
  const verifier = createVerifier(
    {
      network: NETWORKS[values.network],
      mode: values.powMode,
      threads: values.verifyThreads,
      dataDir: join(values.dataDir, 'datasets'),
    },
    { log: (message, fields) => log.child('pow').info(message, fields) },
  );
  shutdown.add('verifier', () => verifier.close());
  const identity = await loadIdentity(values.dataDir);
  const api = await listenForApi(values, identity, { log, shutdown, version });
  const clock = watchClock(log.child('clock'));
  shutdown.add('clock', () => clock.stop());
  const snapshots = snapshotPlan(values);
  const validators = validatorPlan(values);
  const peers = networkPlan(values);
  let view: PeerView | undefined;
  const node = await openNode(
    { ...values, validators, peers, snapshots, release: version },
    {
      verifier,
      log,
      now: clock.now,
      wall: wallMillis,
      started: (name, stop) => shutdown.add(name, stop),
      fault: (reason) => shutdown.request(reason, 1),
      figures,
      onPeers: (started) => {
        view = started;
      },
    },
  );
  const miners = new MinerWatch({ waiting: () => node.mempool.count, steady: steadyMillis, log });
  node.on('block', () => miners.block());
  node.on('cut', () => miners.tick());
  if (!node.makesCuts) {
    const watch = new SyncWatch({ sync: () => node.chain.sync(), log });
    const unsubscribe = node.on('cut', () => watch.look());
    const timer = setInterval(() => watch.look(), SYNC_LOOK_MILLIS);
    shutdown.add('sync watch', () => {
      unsubscribe();
      clearInterval(timer);
    });
  }
  api?.serve(node);
  shutdown.add('answers of the public API', () => api?.serve(undefined));
  await listen(values, node, identity, { log, shutdown, version }, metrics, {
    peersDocument: view && (() => peersDocument(view as PeerView)),
    onTemplate: (result) => figures.submission('template', result),
  });
}

/** Started before the chain is open, which can take a while: until then it answers that the node is not ready. */
async function listenForApi(
  values: RunValues,
  identity: NodeIdentity,
  { log, shutdown, version }: DaemonDependencies,
): Promise<PublicApi | undefined> {
  if (values.apiBind === 'off') return undefined;
  const api = await startApi(
    {
      bind: values.apiBind,
      version,
      network: values.network,
      browserOrigins: values.browserOrigin,
      trustedProxies: values.trustedProxy,
      hosts: values.hostName,
      public: values.public,
    },
    { identity, now: steadyMillis, log: log.child('api') },
  );
  shutdown.add('public API', () => api.close());
  log.info('public API', { address: showListenAddress(api.address) });
  return api;
}

async function listen(
  values: RunValues,
  node: FullNode,
  identity: NodeIdentity,
  { log, shutdown }: DaemonDependencies,
  metrics: Metrics,
  routes: Pick<MiningListenerDependencies, 'peersDocument' | 'onTemplate'>,
): Promise<void> {
  if (values.metricsBind !== undefined) {
    const listener = await listenForMetrics(values.metricsBind, {
      metrics,
      log,
      hosts: values.hostName,
    });
    shutdown.add('metrics listener', () => listener.close());
    log.info('metrics listener', { address: showListenAddress(listener.address) });
  }
  if (values.miningBind !== 'off') {
    const feed = new CutFeed({}, { node });
    const listener = await listenForMining(
      { bind: values.miningBind, hosts: values.hostName },
      {
        node,
        identity,
        log: log.child('mining'),
        syncDocument: () => nodeSync(node),
        ratesDocument: () => chainRates(node),
        follow: (socket, afterHeight) => void new CutReader(feed, socket, afterHeight),
        ...routes,
      },
    );
    shutdown.add('mining listener', async () => {
      feed.close();
      await listener.close();
    });
    log.info('mining listener', { address: showListenAddress(listener.address) });
  }
}
