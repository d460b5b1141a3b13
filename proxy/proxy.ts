/**
 * Assembles `svc-proxy`: the pool client of the miner, the stratum server of the bridge towards the rigs, and between
 * them jobs one way (pool-jobs.ts) and shares the other (share-relay.ts).
 */
import { setTimeout as wait } from 'node:timers/promises';
import { openVerifier } from '../bridge/start-stratum.ts';
import { listenForStats } from '../bridge/stats.ts';
import type { Verifier } from '../kernels/verifier.ts';
import { openBooks } from '../miner/books/pool-books.ts';
import { EpochAllowance, type Moment } from '../miner/client/epoch-allowance.ts';
import { type NoteLevel, systemClock } from '../miner/client/pool-client.ts';
import type { PoolJob } from '../miner/client/session-events.ts';
import { connectFromNode, fetchFromNode } from '../miner/client/transport-node.ts';
import { readEpochs, writeEpochs } from '../miner/devices/epoch-file.ts';
import { type PoolSettings, poolKey, poolSettings } from '../miner/pool-settings.ts';
import { LineLimit } from '../miner/terminal/line-limit.ts';
import { formatAddress } from '../protocol/address.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { steadyNow, wallMillis } from '../runtime/clock/clock.ts';
import { watchClock } from '../runtime/clock/watched-clock.ts';
import { showListenAddress } from '../runtime/command-line/command-line.ts';
import { optionName } from '../runtime/command-line/options.ts';
import { claimFormat } from '../runtime/files/directory-format.ts';
import { makeDirectory } from '../runtime/files/make-directory.ts';
import type { LogFields, Logger } from '../runtime/log/log.ts';
import { addProcessMetrics, Metrics } from '../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../runtime/metrics/metrics-listener.ts';
import { useNativeSha384 } from '../runtime/native/native-sha384.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import { KEPT_RIGS, KeptAddresses } from './kept-addresses.ts';
import type { ProxyValues } from './options.ts';
import { listenForPage } from './page.ts';
import { PoolJobs } from './pool-jobs.ts';
import { PoolLink, type PoolLinkDependencies } from './pool-link.ts';
import { type ProxyParts, proxyDocument, proxyMetrics } from './proxy-figures.ts';
import { RigServer } from './rig-server.ts';
import { ShareRelay } from './share-relay.ts';

export type ProxyDependencies = {
  readonly log: Logger;
  readonly shutdown: Shutdown;
  readonly version: string;
  /** Replaces the proxy's own; for tests. */
  readonly verifier?: Verifier;
};

export type RunningProxy = ProxyParts & {
  /** Options of a changed config file. */
  readonly apply: (values: ProxyValues) => Promise<void>;
};

/** The name of rigs that log in without one, where the proxy has none either. */
const UNNAMED = 'rig';
const TICK_MILLIS = 1_000;
/** How long the end waits for the pool's answers. */
const LAST_ANSWERS_MILLIS = 2_000;
const METRICS_MILLIS = 2_000;

/** Resolves when it has begun to look for a pool. */
export async function runProxy(
  values: ProxyValues,
  { log, shutdown, version, ...replaced }: ProxyDependencies,
): Promise<RunningProxy> {
  const settings = { values, ...poolSettings(values) };
  const { user } = settings;
  useNativeSha384();
  makeDirectory(values.dataDir);
  await claimFormat(values.dataDir, 'miner');
  const startedMillis = steadyNow();
  const started = (name: string, stop: () => Promise<void> | void) => shutdown.add(name, stop);
  started('clock', watchClock(log.child('clock')).stop);
  const { network } = user.address;
  const { now } = systemClock;
  const stratum = { ...values, network, anchors: 'newest' as const, farmRigs: 0 };
  const verifier = replaced.verifier ?? openVerifier(stratum, { log, started });
  const lines = new LineLimit((level, message, fields) => log[level](message, fields), now);
  const own = { address: user.text, account: user.address.payload };
  const ownHex = toHex(own.account);
  const jobs = new PoolJobs(network, now, values.keepAddresses ? { draw: 0, account: ownHex } : undefined);
  const linkOf = (account: string): PoolLink | undefined => (account === ownHex ? pools.link : kept?.link(account));
  const relay = new ShareRelay(user.worker === '' ? UNNAMED : user.worker, {
    isServed: () => jobs.current !== undefined,
    send: (share, account = ownHex) => {
      const link = linkOf(account);
      if (link === undefined) relay.verdict(share, 'lost', undefined);
      else link.submit(share);
    },
    onWork: (work, of) => {
      const account = toHex(of);
      kept?.worked(account);
      linkOf(account)?.worked(work);
    },
    ...(values.keepAddresses ? { admit: (account) => kept?.admit(account) } : {}),
  });
  const rigs = new RigServer(
    {
      network,
      server: `svc-proxy/${version}`,
      listen: values.listen,
      listenWs: values.listenWs,
      worksFor: { ...own, keepsAddresses: values.keepAddresses },
      values: stratum,
    },
    {
      jobs,
      relay,
      verifier,
      log,
      fault: (error) => {
        log.error('rigs cannot be served', { error });
        shutdown.request('rigs cannot be served', 1);
      },
    },
  );
  /** What the log said last of the session. */
  let wasFarm: boolean | undefined;
  const onJob = (job: PoolJob | undefined, pool: number | undefined): void => {
    const isFarm = job?.farm !== undefined;
    if (job === undefined) lines.note('warn', 'no work: rigs wait for a pool', {});
    else if (isFarm !== wasFarm) {
      wasFarm = isFarm;
      if (isFarm) log.info('farm session: each rig has headers and a name of its own', {});
      else log.warn('the pool has no farms: rigs are told apart by nonces, and it sees one worker', {});
    }
    if (job !== undefined) rigs.serve(job);
    jobs.set(job);
    kept?.follow(job, pool);
  };
  const moment = (): Moment => ({ steady: now(), wall: Date.now() });
  const allowance = new EpochAllowance(network, moment(), readEpochs(values.dataDir, network), (saved) => {
    writeEpochs(values.dataDir, network, saved).catch((error: unknown) =>
      lines.note('warn', 'the epochs of the pools cannot be saved', { error }),
    );
  });
  const onVerdict: PoolLinkDependencies['onVerdict'] = (share, verdict, error, blockId) => {
    relay.verdict(share, verdict, error, blockId !== undefined);
    if (blockId !== undefined)
      lines.note('info', 'block found', { ...(share.farm === undefined ? {} : { rig: share.farm.rig }), id: blockId });
    if (verdict === 'accepted') return;
    lines.note('warn', verdict === 'lost' ? 'share lost on its way to the pool' : `share ${verdict} by the pool`, {
      ...(share.farm === undefined ? {} : { rig: share.farm.rig }),
      ...(error === undefined ? {} : { reason: error.message, code: error.code }),
    });
  };
  const note = (level: NoteLevel, message: string, fields: LogFields): void => lines.note(level, message, fields);
  /** All that the options about pools decide. */
  const openPools = ({ values: chosen, user: { worker }, tls }: ProxySettings) => {
    const { random } = systemClock;
    const reads = { now, wall: wallMillis, random, fetch: fetchFromNode(tls), note };
    const books = openBooks(chosen, values.dataDir, reads, 'address');
    const common = {
      network,
      agent: `svc-proxy/${version}`,
      pinned: chosen.expectPayout?.payload,
      sharesPerSecond: chosen.upstreamShares,
    };
    const parts = { connect: connectFromNode(tls), note, verifier, allowance, moment, onVerdict };
    const link = new PoolLink(
      { ...common, ...own, pools: chosen.pool, worker, rigs: chosen.rigs },
      {
        ...parts,
        onJob,
        ...(books === undefined ? {} : { books }),
      },
    );
    const openKept = (account: Bytes, pool: number, onKeptJob: (job: PoolJob | undefined) => void): PoolLink =>
      new PoolLink(
        {
          ...common,
          pools: chosen.pool.slice(pool, pool + 1),
          address: formatAddress(account, network),
          account,
          worker: '',
          rigs: Math.min(chosen.rigs, KEPT_RIGS),
        },
        { ...parts, onJob: onKeptJob },
      );
    return { link, books, openKept };
  };
  let pools = openPools(settings);
  let inUse = upstreamKey(settings);
  const kept = values.keepAddresses
    ? new KeptAddresses({
        own,
        jobs,
        now,
        warn: (message, account) => lines.note('warn', message, { address: formatAddress(account, network) }),
        open: (...kind) => pools.openKept(...kind),
      })
    : undefined;
  const begin = (): void => {
    pools.books?.start();
    pools.link.client.start();
  };
  /** Rigs stay: the next job is of the pools named now. */
  const apply = async (news: ProxyValues): Promise<void> => {
    // The address stays until a restart: rigs were told it.
    const chosen = { ...news, user: values.user };
    const next = { values: chosen, ...poolSettings(chosen) };
    const unused = changedButUnused(values, news);
    if (unused.length > 0) log.warn('changed options that are not used before a restart', { options: unused });
    if (upstreamKey(next) === inUse) return;
    log.info('pools changed', { pools: news.pool.map(({ text }) => text) });
    pools.link.stop();
    onJob(undefined, undefined);
    kept?.leave();
    await pools.books?.stop();
    pools = openPools(next);
    inUse = upstreamKey(next);
    begin();
  };
  started('books', () => pools.books?.stop());
  started('pool', async () => {
    const until = now() + LAST_ANSWERS_MILLIS;
    while (relay.figures.waiting > 0 && pools.link.client.state !== undefined && now() < until) await wait(20);
    kept?.stop();
    pools.link.client.stop();
    const { waiting } = relay.figures;
    if (waiting > 0) log.warn('shares were passed on and not answered', { shares: waiting });
    lines.end();
  });
  const tick = setInterval(() => {
    lines.tick();
    jobs.tick();
    pools.link.tick();
    kept?.tick();
  }, TICK_MILLIS);
  started('ticks', () => clearInterval(tick));
  started('rigs', () => rigs.close());
  const figures = { relay, rigs, link: () => pools.link, kept, apply };
  const about = { network, version, address: user.text, startedMillis };
  const document = () => proxyDocument(figures, { ...about, nowMillis: steadyNow() });
  if (values.statsBind !== 'off') {
    const stats = await listenForStats(values.statsBind, { stats: document, log, hosts: values.hostName });
    started('statistics', () => stats.close());
    log.info('statistics', { address: showListenAddress(stats.address) });
  }
  if (values.webBind !== 'off') {
    const page = await listenForPage(values.webBind, { document, log, hosts: values.hostName });
    started('page', () => page.close());
    log.info('page', { address: showListenAddress(page.address) });
  }
  if (values.metricsBind !== 'off') {
    const metrics = new Metrics('svc_proxy');
    addProcessMetrics(metrics, version);
    const update = proxyMetrics(metrics, figures);
    const timer = setInterval(() => void update(), METRICS_MILLIS);
    started('figures', () => clearInterval(timer));
    const listener = await listenForMetrics(values.metricsBind, { metrics, log, hosts: values.hostName });
    started('metrics', () => listener.close());
    log.info('metrics', { address: showListenAddress(listener.address) });
  }
  log.info('waiting for a pool', { pools: values.pool.map(({ text }) => text), address: user.text, network });
  begin();
  return figures;
}

type ProxySettings = PoolSettings & { readonly values: ProxyValues };

/** The options that may change while it runs. */
const upstreamKey = (settings: ProxySettings): string =>
  JSON.stringify([poolKey(settings), settings.values.upstreamShares, settings.values.rigs]);

/** All others. */
function othersOf(values: ProxyValues): object {
  const { pool, expectPayout, tlsPin, tlsCa, poolApi, poolKey: _, nodeApi, payoutThreshold, ...more } = values;
  const { checkBooks, upstreamShares, rigs, ...others } = more;
  return others;
}

/** The names of the options that were changed and need a restart. */
export function changedButUnused(before: ProxyValues, news: ProxyValues): string[] {
  const was = new Map(Object.entries(othersOf(before)));
  const is = new Map(Object.entries(othersOf(news)));
  const names = [...new Set([...was.keys(), ...is.keys()])];
  return names.filter((name) => textOf(was.get(name)) !== textOf(is.get(name))).map(optionName);
}

const textOf = (option: unknown): string =>
  JSON.stringify([option], (_name, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));
