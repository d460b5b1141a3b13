/**
 * Assembles `svc-bridge`: verifier, node or nodes, stratum server with counters, statistics and metrics, in this order.
 * Each is registered with the shutdown as it starts.
 */
import type { Verifier } from '../kernels/verifier.ts';
import { NETWORK_NAMES, NETWORKS } from '../protocol/network.ts';
import { steadyNow } from '../runtime/clock/clock.ts';
import { watchClock } from '../runtime/clock/watched-clock.ts';
import {
  choice,
  listenAddress,
  listenAddressOrOff,
  type OptionTable,
  parsed,
  path,
  readHttpUrl,
  repeated,
  showListenAddress,
  type ValuesOf,
} from '../runtime/command-line/command-line.ts';
import { hostNameOption } from '../runtime/door/host-name.ts';
import type { Logger } from '../runtime/log/log.ts';
import { logOptions } from '../runtime/log/log.ts';
import { addProcessMetrics, Metrics } from '../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../runtime/metrics/metrics-listener.ts';
import { useNativeSha384 } from '../runtime/native/native-sha384.ts';
import { nodeIdentityOption, pinOf } from '../runtime/node-client/node-identity.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import { stratumMetrics } from './bridge-metrics.ts';
import { openNodeSources } from './nodes/node-sources.ts';
import { stratumOptions, threadsOf } from './options.ts';
import { Counters } from './shares/counters.ts';
import { checkCertificate, openVerifier, startStratum } from './start-stratum.ts';
import { listenForStats, statsDocument } from './stats.ts';

export const bridgeOptions = {
  network: choice({ help: 'which network', default: 'development' }, NETWORK_NAMES),
  node: repeated(
    parsed(
      {
        help: 'mining listener of a node; several serve in this order; without one a node is embedded',
        placeholder: 'URL',
      },
      readHttpUrl('http://127.0.0.1:28702'),
    ),
  ),
  nodeIdentity: nodeIdentityOption(),
  dataDir: path({ help: 'where an embedded node and datasets are kept', default: '.data/bridge', placeholder: 'DIR' }),
  listen: listenAddress({ help: 'stratum: v1, v2 and TLS on one port', default: '127.0.0.1:28710' }),
  listenWs: listenAddressOrOff({ help: 'stratum over WebSocket', default: '127.0.0.1:28711' }),
  statsBind: listenAddressOrOff({ help: 'statistics as JSON', default: '127.0.0.1:28771' }),
  metricsBind: listenAddressOrOff({ help: 'metrics for Prometheus', default: '127.0.0.1:28792' }),
  hostName: hostNameOption('Options'),
  powMode: choice({ help: 'full keeps the dataset in memory, light only its cache', default: 'full' }, [
    'full',
    'light',
  ]),
  ...stratumOptions,
  ...logOptions,
} as const satisfies OptionTable;

export type BridgeValues = ValuesOf<typeof bridgeOptions>;
export type BridgeDependencies = {
  readonly log: Logger;
  readonly shutdown: Shutdown;
  readonly version: string;
  /** Replaces the bridge's own; for tests. */
  readonly verifier?: Verifier;
};

const METRICS_MILLIS = 2_000;

export async function runBridge(values: BridgeValues, dependencies: BridgeDependencies): Promise<void> {
  const { log, shutdown, version } = dependencies;
  checkCertificate(values);
  useNativeSha384();
  const startedMillis = steadyNow();
  const started = (name: string, stop: () => Promise<void> | void) => shutdown.add(name, stop);
  const clock = watchClock(log.child('clock'));
  started('clock', clock.stop);
  const network = NETWORKS[values.network];
  const verifier = dependencies.verifier ?? openVerifier(values, { log, started });
  const { sources } = await openNodeSources(
    {
      network: values.network,
      urls: values.node,
      pin: pinOf(values.nodeIdentity),
      anchors: values.anchors,
      dataDir: values.dataDir,
      threads: threadsOf(values),
    },
    { verifier, log, now: clock.now, started, fault: (reason) => shutdown.request(reason, 1) },
  );
  const counters = new Counters();
  const server = await startStratum(
    {
      network: values.network,
      server: `svc-bridge/${version}`,
      services: [
        {
          name: 'bridge',
          listen: values.listen,
          ...(values.listenWs === 'off' ? {} : { listenWs: values.listenWs }),
          pool: null,
          tag: 'miner',
        },
      ],
      values,
      dataDir: values.dataDir,
    },
    { sources, sink: counters, verifier, log, started },
  );
  if (values.statsBind !== 'off') {
    const about = { network: network.name, version, startedMillis };
    const stats = await listenForStats(values.statsBind, {
      stats: () => statsDocument(server, counters, { ...about, nowMillis: steadyNow() }),
      log,
      hosts: values.hostName,
    });
    shutdown.add('statistics', () => stats.close());
    log.info('statistics', { address: showListenAddress(stats.address) });
  }
  if (values.metricsBind !== 'off') {
    const metrics = new Metrics('svc_bridge');
    addProcessMetrics(metrics, version);
    const update = stratumMetrics(metrics, 'svc_bridge_');
    const accepted = metrics.gauge('svc_bridge_accepted_work', { help: 'Work of all accepted shares, in hashes' });
    const workers = metrics.gauge('svc_bridge_workers', { help: 'Workers seen' });
    const timer = setInterval(() => {
      accepted.set(Number(counters.totals.work));
      workers.set(counters.workerCount);
      void server.figures().then(update);
    }, METRICS_MILLIS);
    shutdown.add('figures', () => clearInterval(timer));
    const listener = await listenForMetrics(values.metricsBind, { metrics, log, hosts: values.hostName });
    shutdown.add('metrics', () => listener.close());
    log.info('metrics', { address: showListenAddress(listener.address) });
  }
}
