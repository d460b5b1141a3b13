/**
 * Assembles `svc-proxy`: the pool client of the miner, the stratum server of the bridge towards the rigs, and between
 * them jobs one way (pool-jobs.ts) and shares the other (share-relay.ts).
 */
import { setTimeout as wait } from 'node:timers/promises';
import { openVerifier } from '../bridge/start-stratum.ts';
import { listenForStats } from '../bridge/stats-listener.ts';
import type { Verifier } from '../kernels/verifier.ts';
import { openBooks, type PoolBooks } from '../miner/books/pool-books.ts';
import { EpochAllowance, type Moment } from '../miner/client/epoch-allowance.ts';
import type { BooksEvents } from '../miner/client/link-books.ts';
import { type NoteLevel, systemClock } from '../miner/client/pool-client.ts';
import type { PoolJob, Share, Verdict } from '../miner/client/session-events.ts';
import { connectFromNode, fetchFromNode, type TlsOptions } from '../miner/client/transport-node.ts';
import { readEpochs, writeEpochs } from '../miner/devices/epoch-file.ts';
import { MinerError } from '../miner/miner-error.ts';
import { LineLimit } from '../miner/terminal/line-limit.ts';
import { formatAddress } from '../protocol/address.ts';
import { type Bytes, equalBytes, toHex } from '../protocol/bytes.ts';
import type { ErrorReply } from '../protocol/stratum/errors.ts';
import { steadyNow } from '../runtime/clock/clock.ts';
import { watchClock } from '../runtime/clock/watched-clock.ts';
import { showListenAddress } from '../runtime/command-line/command-line.ts';
import { optionName } from '../runtime/command-line/options.ts';
import { makeDirectory } from '../runtime/files/make-directory.ts';
import { readSmallFile } from '../runtime/files/small-file.ts';
import type { LogFields, Logger } from '../runtime/log/log.ts';
import { addProcessMetrics, Metrics } from '../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../runtime/metrics/metrics-listener.ts';
import { useNativeSha384 } from '../runtime/native/native-sha384.ts';
import type { Shutdown } from '../runtime/shutdown.ts';
import { KeptAddresses } from './kept-addresses.ts';
import type { ProxyValues } from './options.ts';
import { listenForPage } from './page.ts';
import { PoolJobs } from './pool-jobs.ts';
import { PoolLink } from './pool-link.ts';
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
/** Rigs of an address that they named themselves: a pool admits a number of them for all sessions of a machine. */
const KEPT_RIGS = 1_000;
const TICK_MILLIS = 1_000;
/** How long the end waits for the pool's answers. */
const LAST_ANSWERS_MILLIS = 2_000;
const METRICS_MILLIS = 2_000;

/** Resolves when it has begun to look for a pool. */
export async function runProxy(
  values: ProxyValues,
  { log, shutdown, ...others }: ProxyDependencies,
): Promise<RunningProxy> {
  const { user, version } = { user: values.user, ...others };
  if (user === undefined) throw new MinerError('pool_url', 'no address is named');
  const checkUser = ({ expectPayout }: ProxyValues): void => {
    if (expectPayout !== undefined && expectPayout.network !== user.address.network)
      throw new MinerError('pool_network', '--expect-payout and --user are addresses of different networks');
  };
  checkUser(values);
  useNativeSha384();
  makeDirectory(values.dataDir);
  const startedMillis = steadyNow();
  const started = (name: string, stop: () => Promise<void> | void) => shutdown.add(name, stop);
  started('clock', watchClock(log.child('clock')).stop);
  const { network } = user.address;
  const { now } = systemClock;
  const stratum = { ...values, network, anchors: 'newest' as const, farmRigs: 0 };
  const verifier = others.verifier ?? openVerifier(stratum, { log, started });
  const lines = new LineLimit((level, message, fields) => log[level](message, fields), now);
  const own = { address: user.text, account: user.address.payload };
  const jobs = values.keepAddresses
    ? new PoolJobs(network, { draw: 0, account: toHex(own.account) })
    : new PoolJobs(network);
  const relay = new ShareRelay(user.worker === '' ? UNNAMED : user.worker, {
    isServed: () => jobs.current !== undefined,
    send: (share, account) => {
      if (kept?.submit(share, account) === true) return;
      if (account === undefined || account === toHex(own.account)) pools.link.submit(share);
      else relay.verdict(share, 'lost', undefined);
    },
    onWork: (done, account) => {
      if (equalBytes(account, own.account)) pools.link.work.add(done, now());
      else kept?.worked(account, done);
    },
    ...(values.keepAddresses ? { refusal: (account) => kept?.refusal(account) } : {}),
  });
  const rigs = new RigServer(
    {
      network,
      server: `svc-proxy/${version}`,
      listen: values.listen,
      listenWs: values.listenWs,
      farm: { ...own, keepsAddresses: values.keepAddresses },
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
  const isFarm = { told: undefined as boolean | undefined };
  const onJob = (job: PoolJob | undefined, pool: number | undefined): void => {
    if (job === undefined) lines.note('warn', 'no work: rigs wait for a pool', {});
    else if (isFarm.told !== (job.farm !== undefined)) {
      isFarm.told = job.farm !== undefined;
      if (isFarm.told) log.info('farm session: each rig has headers and a name of its own', {});
      else log.warn('the pool has no farms: rigs are told apart by nonces, and it sees one worker', {});
    }
    jobs.set(job);
    if (job !== undefined) rigs.serve(job);
    kept?.follow(job, pool);
  };
  const moment = (): Moment => ({ steady: now(), wall: Date.now() });
  const allowance = new EpochAllowance(network, moment(), readEpochs(values.dataDir, network), (saved) => {
    writeEpochs(values.dataDir, network, saved).catch((error: unknown) =>
      lines.note('warn', 'the epochs of the pools cannot be saved', { error }),
    );
  });
  const onVerdict = (share: Share, verdict: Verdict, error: ErrorReply | undefined): void => {
    relay.verdict(share, verdict, error);
    if (verdict === 'accepted') return;
    lines.note('warn', verdict === 'lost' ? 'share lost on its way to the pool' : `share ${verdict} by the pool`, {
      ...(share.farm === undefined ? {} : { rig: share.farm.rig }),
      ...(error === undefined ? {} : { reason: error.message, code: error.code }),
    });
  };
  const note = (level: NoteLevel, message: string, fields: LogFields): void => lines.note(level, message, fields);
  /** All that the options about pools decide. */
  const openPools = (chosen: ProxyValues, tls: TlsOptions) => {
    const { random } = systemClock;
    const books = openBooks(chosen, values.dataDir, { now, wall: Date.now, random, fetch: fetchFromNode(tls), note });
    const common = {
      network,
      agent: `svc-proxy/${version}`,
      pinned: chosen.expectPayout?.payload,
      sharesPerSecond: chosen.upstreamShares,
    };
    const parts = { connect: connectFromNode(tls), note, verifier, allowance, moment, onVerdict };
    const link = new PoolLink(
      { ...common, ...own, pools: chosen.pool, worker: user.worker, rigs: chosen.rigs },
      {
        ...parts,
        onJob,
        ...(books === undefined ? {} : { books: booksOf(books, () => jobs.current?.farm !== undefined) }),
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
    return { values: chosen, link, books, openKept };
  };
  let pools = openPools(values, tlsOf(values));
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
    checkUser(news);
    if (news.pool.length === 0) throw new MinerError('pool_url', 'no pool is named');
    const unused = changedButUnused(values, news);
    if (unused.length > 0) log.warn('changed options that are not used before a restart', { options: unused });
    if (poolsOf(news) === poolsOf(pools.values)) return;
    const tls = tlsOf(news);
    log.info('pools changed', { pools: news.pool.map(({ text }) => text) });
    pools.link.stop();
    onJob(undefined, undefined);
    kept?.leave();
    await pools.books?.stop();
    pools = openPools(news, tls);
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
    pools.link.tick();
    kept?.tick();
  }, TICK_MILLIS);
  started('ticks', () => clearInterval(tick));
  started('rigs', () => rigs.close());
  const figures = { jobs, relay, rigs, link: () => pools.link, kept, apply };
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

/** Receipts of a farm are by rig, and the watch compares those of one worker: there it looks at lists, rewards and payments alone. */
const booksOf = (books: PoolBooks, isFarm: () => boolean): BooksEvents => ({
  onOffer: (...offer) => books.onOffer(...offer),
  onAddress: (...address) => books.onAddress(...address),
  onService: (...service) => books.onService(...service),
  onHeight: (...height) => books.onHeight(...height),
  onFound: (...found) => books.onFound(...found),
  onReceipt: (...receipt) => {
    if (!isFarm()) books.onReceipt(...receipt);
  },
  onTold: (...told) => {
    if (!isFarm()) books.onTold(...told);
  },
});

function tlsOf({ tlsPin: pins, tlsCa }: ProxyValues): TlsOptions {
  if (tlsCa === undefined) return { pins };
  try {
    return { pins, authorities: readSmallFile(tlsCa) };
  } catch (error) {
    throw new MinerError('pool_certificate', `cannot read --tls-ca: ${(error as Error).message}`);
  }
}

const textOf = (options: object): string =>
  JSON.stringify(options, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));

/** The options that may change while it runs, and the others. */
function partsOf(values: ProxyValues): readonly [object, object] {
  const { pool, expectPayout, tlsPin, tlsCa, poolApi, poolKey, nodeApi, payoutThreshold, ...more } = values;
  const { checkBooks, upstreamShares, rigs, ...rest } = more;
  const books = { poolApi, poolKey, nodeApi, payoutThreshold, checkBooks };
  return [{ pool, expectPayout, tlsPin, tlsCa, books, upstreamShares, rigs }, rest];
}
const poolsOf = (values: ProxyValues): string => textOf(partsOf(values)[0]);

/** The names of the options that were changed and need a restart. */
export function changedButUnused(before: ProxyValues, news: ProxyValues): string[] {
  const was = new Map<string, unknown>(Object.entries(partsOf(before)[1]));
  const is = new Map<string, unknown>(Object.entries(partsOf(news)[1]));
  const names = [...new Set([...was.keys(), ...is.keys()])];
  return names.filter((name) => textOf([was.get(name)]) !== textOf([is.get(name)])).map(optionName);
}
