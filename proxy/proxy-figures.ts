/** The document of `GET /v1/stats` (docs/proxy.md) and the metrics of svc-proxy. Works are decimal text: they pass 2^53. */
import { stratumMetrics, Totals } from '../bridge/bridge-metrics.ts';
import { banDocuments, connectionsDocument, sharesDocument, workerDocuments } from '../bridge/stats.ts';
import { formatAddress } from '../protocol/address.ts';
import type { NetworkName } from '../protocol/network.ts';
import type { Metrics } from '../runtime/metrics/metrics.ts';
import type { KeptAddresses } from './kept-addresses.ts';
import type { PoolLink } from './pool-link.ts';
import type { RigServer } from './rig-server.ts';
import type { ShareRelay } from './share-relay.ts';

export type ProxyParts = {
  readonly relay: ShareRelay;
  readonly rigs: Pick<RigServer, 'current'>;
  /** The session of the proxy's own address. */
  readonly link: () => PoolLink;
  /** Undefined where all rigs work for one address. */
  readonly kept: Pick<KeptAddresses, 'links'> | undefined;
};

/** Hashes per second of all rigs. */
const rateOf = ({ link, kept }: ProxyParts): number =>
  (kept?.links ?? []).reduce((all, one) => all + (one.link?.rate ?? 0), link().rate);

export async function proxyDocument(
  parts: ProxyParts,
  about: {
    readonly network: NetworkName;
    readonly version: string;
    readonly address: string;
    readonly startedMillis: number;
    readonly nowMillis: number;
  },
) {
  const { kept } = parts;
  const server = parts.rigs.current;
  const figures = await server?.figures();
  const { counters, figures: passed } = parts.relay;
  const { client, job } = parts.link();
  const { state } = client;
  return {
    api_version: 1,
    version: about.version,
    network: about.network,
    address: about.address,
    uptime_millis: Math.floor(about.nowMillis - about.startedMillis),
    ready: figures?.ready ?? false,
    pool:
      state === undefined
        ? { connected: false as const, last_refusal: client.lastRefusal?.message ?? null }
        : {
            connected: true as const,
            endpoint: state.endpoint,
            server: state.server,
            name: state.poolName ?? null,
            latency_millis: state.latencyMillis ?? null,
            form: job?.farm === undefined ? 'nonces' : 'farm',
            share_work: job?.work.toString() ?? null,
          },
    kept_addresses: (kept?.links ?? []).map((one) => ({
      address: formatAddress(one.account, about.network),
      connected: one.link?.client.state !== undefined,
      share_work: one.link?.job?.work.toString() ?? null,
    })),
    passed_on: { ...passed, work: passed.work.toString() },
    connections: connectionsDocument(figures ?? { listeners: [] }),
    shares: sharesDocument(counters),
    hash_rate: Math.round(rateOf(parts)).toString(),
    rigs: workerDocuments(counters, about).map(({ worker: name, ...rig }) => ({ name, ...rig })),
    rig_count: counters.workerCount,
    bans: server === undefined ? [] : banDocuments(server),
  };
}

export type ProxyDocument = Awaited<ReturnType<typeof proxyDocument>>;

/** The update to be called every few seconds. */
export function proxyMetrics(metrics: Metrics, parts: ProxyParts): () => Promise<void> {
  const { relay, rigs, link, kept } = parts;
  const update = stratumMetrics(metrics, 'svc_proxy_');
  const connected = metrics.gauge('svc_proxy_pool_connected', { help: 'Whether a pool is logged in to' });
  const isFarm = metrics.gauge('svc_proxy_farm', { help: 'Whether the session at the pool is a farm session' });
  const shareWork = metrics.gauge('svc_proxy_pool_share_work', { help: 'Work of a share for the pool, in hashes' });
  const rate = metrics.gauge('svc_proxy_hash_rate', { help: 'Hashes per second of all rigs, by their shares' });
  const names = metrics.gauge('svc_proxy_rigs', { help: 'Rigs seen, by name' });
  const addresses = metrics.gauge('svc_proxy_kept_addresses', {
    help: 'Addresses of rigs with a session of their own at the pool',
  });
  const waiting = metrics.gauge('svc_proxy_waiting_shares', { help: 'Shares passed on and not answered yet' });
  const accepted = metrics.gauge('svc_proxy_accepted_work', { help: 'Work that the pool accepted, in hashes' });
  const logins = new Totals(metrics.counter('svc_proxy_pool_logins_total', { help: 'Connections opened to pools' }));
  const sent = new Totals(metrics.counter('svc_proxy_passed_on_total', { help: 'Shares passed on to the pool' }));
  const answers = new Totals(
    metrics.counter('svc_proxy_pool_answers_total', {
      help: 'Answers of the pool to shares, by kind; lost: there was none',
      labels: ['reason'],
      maxSeries: 32,
    }),
  );
  return async () => {
    const { figures } = relay;
    const { client, job } = link();
    connected.set(client.state === undefined ? 0 : 1);
    isFarm.set(job?.farm === undefined ? 0 : 1);
    shareWork.set(Number(job?.work ?? 0n));
    rate.set(rateOf(parts));
    names.set(relay.counters.workerCount);
    addresses.set(kept?.links.length ?? 0);
    waiting.set(figures.waiting);
    accepted.set(Number(figures.work));
    logins.set(client.connections);
    sent.set(figures.sent);
    for (const reason of ['accepted', 'stale', 'lost'] as const) answers.set(figures[reason], { reason });
    for (const [reason, count] of Object.entries(figures.rejected)) answers.set(count, { reason });
    const server = rigs.current;
    if (server === undefined) return;
    const served = await server.figures();
    // The pool says which shares are blocks, and alone knows what becomes of them.
    update({ ...served, blocks: { ...served.blocks, found: figures.blocks } });
  };
}
