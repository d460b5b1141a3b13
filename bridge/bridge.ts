/**
 * `svc-bridge`, put together: verifier, node or nodes, stratum server with counters, statistics and metrics, in this
 * order, each handed to the shutdown as it starts.
 */
import { join } from 'node:path';
import { createVerifier } from '../kernels/verifier.ts';
import { runDaemon } from '../node/daemon.ts';
import { runOptions } from '../node/node-options.ts';
import { formatAddress } from '../protocol/address.ts';
import { toHex } from '../protocol/bytes.ts';
import { NETWORK_NAMES, NETWORKS } from '../protocol/network.ts';
import { MAX_EXTRANONCE } from '../protocol/tag.ts';
import { laterMillis, steadyNow } from '../runtime/clock.ts';
import {
  choice,
  listenAddress,
  listenAddressOrOff,
  type OptionTable,
  parseCommandLine,
  parsed,
  path,
  repeated,
  showListenAddress,
  type ValuesOf,
} from '../runtime/command-line/command-line.ts';
import { hostNameOption } from '../runtime/door/host-name.ts';
import type { Logger } from '../runtime/log.ts';
import { logOptions } from '../runtime/log.ts';
import { addProcessMetrics, Metrics } from '../runtime/metrics.ts';
import { listenForMetrics } from '../runtime/metrics-listener.ts';
import { useNativeSha384 } from '../runtime/native-sha384.ts';
import { nodeIdentityOption, pinOf } from '../runtime/node-identity.ts';
import { nodeTransport } from '../runtime/node-transport.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import { watchClock } from '../runtime/watched-clock.ts';
import { BridgeError } from './bridge-error.ts';
import { stratumMetrics } from './bridge-metrics.ts';
import { type CertificateFiles, readCertificate, warnOfExpiry, watchCertificate } from './certificate.ts';
import { Counters } from './counters.ts';
import { EmbeddedNode } from './node-embedded.ts';
import { HttpNode } from './node-http.ts';
import { limitsOf, type StratumValues, stratumOptions, threadsOf } from './options.ts';
import { createStratumServer } from './server.ts';
import { statsDocument } from './stats.ts';
import { listenForStats } from './stats-listener.ts';
import { type NodeSource, NodeUpstream, UPSTREAM_DEFAULTS } from './upstream.ts';

const nodeUrl = (word: string): string => {
  const url = URL.canParse(word) ? new URL(word) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new Error(`must be the URL of a mining listener, such as http://127.0.0.1:28702, not '${word}'`);
  return word.replace(/\/+$/, '');
};

export const bridgeOptions = {
  network: choice({ help: 'which network', default: 'development' }, NETWORK_NAMES),
  node: repeated(
    parsed(
      {
        help: 'mining listener of a node; several serve in this order; without one a node is embedded',
        placeholder: 'URL',
      },
      nodeUrl,
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
export type BridgeDependencies = { readonly log: Logger; readonly shutdown: Shutdown; readonly version: string };

const MAX_TEMPLATE_TRANSACTIONS = 65_536;
const NODE_TIMEOUT_MILLIS = 10_000;
const METRICS_MILLIS = 2_000;

/** Who a template pays before a connection's own address is put in: nobody. */
const PLACEHOLDER_PAYOUT = new Uint8Array(49);
/** As long as an extranonce can be: the body must leave room for every connection's own. */
const PLACEHOLDER_EXTRANONCE = new Uint8Array(MAX_EXTRANONCE);

export async function runBridge(values: BridgeValues, dependencies: BridgeDependencies): Promise<void> {
  const { log, shutdown, version } = dependencies;
  useNativeSha384();
  const startedMillis = steadyNow();
  shutdown.add('clock', watchClock(log.child('clock')).stop);
  const network = NETWORKS[values.network];
  const files = certificateFiles(values);
  const certificate = files === null ? null : readCertificate(files);
  if (certificate !== null) warnOfExpiry(certificate, log, Date.now());
  const verifier = createVerifier(
    {
      network,
      mode: values.powMode,
      dataDir: join(values.dataDir, 'datasets'),
      ...(values.verifyThreads === undefined ? {} : { threads: values.verifyThreads }),
    },
    { log: (message, fields) => log.child('pow').info(message, fields) },
  );
  shutdown.add('verifier', () => verifier.close());
  const upstream = new NodeUpstream(
    { network, ...UPSTREAM_DEFAULTS },
    { sources: await openNodes(values, dependencies), now: laterMillis, log: log.child('upstream') },
  );
  const counters = new Counters();
  const server = await createStratumServer(
    {
      network,
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
      threads: threadsOf(values),
      limits: limitsOf(values),
      wsOrigins: values.wsOrigin,
      proxies: values.proxyProtocol,
      allow: values.allow,
      certificate,
    },
    { upstream, sink: counters, verifier, log: log.child('stratum') },
  );
  shutdown.add('stratum server', async () => {
    await server.drain();
    await server.close();
  });
  for (const { kind, host, port } of server.addresses)
    log.info('stratum listener', { kind, address: showListenAddress({ host, port }), tls: certificate !== null });
  if (files !== null && certificate !== null)
    shutdown.add(
      'certificate',
      watchCertificate(files, certificate, log, (news) => server.setCertificate(news)),
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
    const metrics = new Metrics();
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

export function certificateFiles(values: Pick<StratumValues, 'tlsCert' | 'tlsKey'>): CertificateFiles | null {
  const { tlsCert: cert, tlsKey: key } = values;
  if ((cert === undefined) !== (key === undefined))
    throw new BridgeError('options_disagree', '--tls-cert and --tls-key come together');
  return cert === undefined || key === undefined ? null : { cert, key };
}

async function openNodes(values: BridgeValues, dependencies: BridgeDependencies): Promise<NodeSource[]> {
  const { log, shutdown, version } = dependencies;
  if (values.node.length > 0)
    return values.node.map(
      (url) =>
        new HttpNode(
          {
            url,
            payout: formatAddress(PLACEHOLDER_PAYOUT, values.network),
            maxTransactions: MAX_TEMPLATE_TRANSACTIONS,
            extranonce: toHex(PLACEHOLDER_EXTRANONCE),
            timeoutMillis: NODE_TIMEOUT_MILLIS,
            pin: pinOf(values.nodeIdentity),
          },
          nodeTransport(),
        ),
    );
  const words = ['--network', values.network, '--data-dir', join(values.dataDir, 'node'), '--pow-mode', values.powMode];
  const parsedWords = parseCommandLine(
    { name: 'node', summary: '', options: runOptions },
    [...words, '--api-bind', 'off', '--mining-bind', 'off'],
    () => '',
  );
  if (parsedWords.kind !== 'run') throw new Error('the options of the embedded node are wrong');
  const node = await runDaemon(parsedWords.values, { log: log.child('node'), shutdown, version });
  const options = { payout: PLACEHOLDER_PAYOUT, maxTransactions: MAX_TEMPLATE_TRANSACTIONS };
  return [new EmbeddedNode({ ...options, extranonce: PLACEHOLDER_EXTRANONCE }, node)];
}
