/**
 * Assembles the pool (docs/pool.md): journal and feed under the bridge's stratum server, the books while this instance
 * holds the term, the API beside them. Parts start in the order of their dependencies; each is registered with `stop`
 * as it starts, which must stop them in reverse.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { BOOT_ID_BYTES } from '../bridge/session/extranonce.ts';
import { openVerifier } from '../bridge/start-stratum.ts';
import type { StratumFigures, StratumServer } from '../bridge/stratum-server.ts';
import { PUBLIC_RATE_LIMIT } from '../node/api/rate-limit.ts';
import { parseAddress } from '../protocol/address.ts';
import { createApiClient } from '../protocol/api/client.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { NETWORKS, powEpoch } from '../protocol/network.ts';
import { steadyMillis, wallMillis } from '../runtime/clock/clock.ts';
import { watchClock } from '../runtime/clock/watched-clock.ts';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import { shownOptions } from '../runtime/doctor/shown-options.ts';
import { addProcessMetrics, Metrics } from '../runtime/metrics/metrics.ts';
import { useNativeSha384 } from '../runtime/native/native-sha384.ts';
import { pinOf } from '../runtime/node-client/node-identity.ts';
import { type NodeTransport, nodeTransport } from '../runtime/node-client/node-transport.ts';
import { chainOfApi } from './accountant/chain.ts';
import { NodeChains } from './accountant/node-chains.ts';
import { TermRunner } from './accountant/term-runner.ts';
import type { ConnectDocument } from './api/documents.ts';
import { followLoggedBans, readLoggedBans } from './api/operator/logged-bans.ts';
import { OperatorToken } from './api/operator/operator-token.ts';
import { pausePayouts } from './api/operator/payout-pause.ts';
import { auditInThread } from './api/operator/run-audit.ts';
import { openPoolApi } from './api/pool-api.ts';
import { Downloads } from './api/public/downloads.ts';
import type { ChainView } from './api/public/pool-view.ts';
import { startWeb } from './api/web.ts';
import { BALANCE_DEFAULTS, Balances } from './balances.ts';
import { serviceNumber } from './books/intake.ts';
import { insistSliceCuts } from './books/slices.ts';
import type { Sql } from './database/connect.ts';
import { openDatabase } from './database/open-database.ts';
import { editedPoolName, startedWithMinimum } from './edits/edits.ts';
import { PUBLISHED_TERMS_FILE, PublishedTerms } from './edits/published-terms.ts';
import { openFeed } from './feed/open-feed.ts';
import { SERVICES } from './journal/journal-record.ts';
import { PoolSink } from './journal/share-sink.ts';
import { emptyTally } from './mail/mailer.ts';
import { loadSmtp } from './mail/smtp.ts';
import type { PoolValues } from './options.ts';
import { createWalletClient } from './payout/wallet-client.ts';
import { poolMetrics } from './pool-metrics.ts';
import { startPoolStratum } from './pool-stratum.ts';
import { claimKey, openPoolKey, POOL_KEY_FILE } from './receipts/pool-key.ts';
import { ReceiptMaker } from './receipts/receipt-maker.ts';
import { every } from './rounds.ts';
import { connectionsByName } from './shared/shared-state.ts';
import { checkOptions, mailOptions, webhookSecret } from './start/check-options.ts';
import { claimChain, lockAfterBackup } from './start/directory.ts';
import { openPoolNode } from './start/node-link.ts';
import { insistOneInstance } from './start/one-instance.ts';
import { openShared } from './start/open-shared.ts';
import { poolAddress, tellForeignWallet } from './start/pool-address.ts';
import type { PoolDependencies } from './start/pool-dependencies.ts';
import { openWalletLink } from './start/wallet-link.ts';
import { BestShares } from './stats/best-shares.ts';
import { Refusals } from './stats/refusals.ts';
import { upkeepMetrics } from './upkeep-metrics.ts';

/** Wherever the pool is started. */
const BUILT_PAGE = join(import.meta.dirname, '../build/dashboard');

export interface Pool {
  readonly stratum: StratumServer;
  readonly web: ListenAddress;
  readonly poolAddress: string;
  readonly databaseUrl: string;
  readonly sql: Sql;
  readonly isAccountant: () => boolean;
}

const REPORT_MILLIS = 2_000;
const FLUSH_MILLIS = 10_000;
const UPKEEP_MILLIS = 30_000;
const BANS_MILLIS = 30_000;
const FULL_DISK_MILLIS = 1_000;
const SLICE_MILLIS = 1_000;
const CHAIN_MILLIS = 5_000;

export async function createPool(values: PoolValues, dependencies: PoolDependencies): Promise<Pool> {
  const { log, started, version } = dependencies;
  checkOptions(values);
  useNativeSha384();
  const network = NETWORKS[values.network];
  const bootId = Uint8Array.from(randomBytes(BOOT_ID_BYTES));
  const startedMillis = steadyMillis();
  const clock = watchClock(log.child('clock'));
  started('clock', clock.stop);
  const lock = await lockAfterBackup(values.dataDir, dependencies);
  started('data directory lock', () => lock.release());

  const transport = nodeTransport();
  const keyPath = values.poolKeyFile ?? join(values.dataDir, POOL_KEY_FILE);
  const claimed =
    values.node.length > 0
      ? (await watchChains(values, keyPath, transport, dependencies)).claimed
      : Promise.resolve(undefined);
  const { sql, databaseUrl } = await openDatabase(values, dependencies);
  await insistOneInstance({ databaseUrl, hasRedis: values.redis !== undefined }, dependencies);
  const verifier = dependencies.verifier ?? openVerifier(values, dependencies);
  const node = await openPoolNode(values, { ...dependencies, verifier, now: clock.now });
  const pin = node.isEmbedded ? undefined : pinOf(values.nodeIdentity);
  const clientOf = (baseUrl: string, attempts: number, timeoutMillis: number) =>
    createApiClient({ baseUrl, attempts, timeoutMillis, pin }, transport);
  let view: ChainView | undefined;
  const client = clientOf(node.apiUrl, 1, 5_000);
  const look = async () => {
    const atMillis = steadyMillis();
    // At the same time: at the start everything waits for them.
    const [rates, head, sync] = await Promise.all([client.chainRates(), client.chainHead(), client.nodeSync()]);
    view = {
      atMillis,
      height: rates.finalized_height,
      newestMillis: head.finalized_at_millis,
      targetWork: BigInt(rates.block_work),
      hashesPerSecond: BigInt(rates.hashrate),
      rateMillis: rates.span_millis,
      synced: sync.synced,
    };
  };
  await look().catch(() => undefined);
  const wallet = await openWalletLink(values, node.apiUrl, dependencies);
  const address = await poolAddress(sql, { network: network.name, given: values.poolAddress, wallet });
  let isOwnerKnown = false;
  const askOwner = async () => {
    if (!isOwnerKnown) isOwnerKnown = await tellForeignWallet(wallet, address, log);
  };
  // Nothing waits for it: a wallet that hangs keeps neither miners nor the page away.
  void askOwner();
  every(UPKEEP_MILLIS, askOwner, 'whose address it is', dependencies);
  await insistSliceCuts(sql, values.sliceCuts);
  const published = new PublishedTerms(join(values.dataDir, PUBLISHED_TERMS_FILE), {
    log: log.child('books'),
    now: steadyMillis,
    chain: () => view,
  });
  await sql.begin((transaction) => published.settle(transaction));
  const payload = parseAddress(address, network.name).payload;
  log.info('blocks pay the pool', { address });

  const { journal, outbox, ends, keep } = await openFeed(values, { ...dependencies, sql, bootId });
  const { shared, source, unread } = await openShared(values, { ...dependencies, sql, outbox, bootId: journal.bootId });

  const refusals = new Refusals();
  const best = new BestShares();
  const balances = new Balances(BALANCE_DEFAULTS, { sql });
  const counts = { accepted: 0, rejected: 0 };
  const sink = new PoolSink({
    journal,
    outbox,
    log: log.child('journal'),
    now: steadyMillis,
    balance: (account) => balances.of(account),
    listener: {
      shares: (shares) => {
        counts.accepted += shares.length;
        best.add(shares);
      },
      refused: (shares) => {
        counts.rejected += shares.length;
        refusals.add(shares);
      },
      block: (block) =>
        void shared.publish({
          kind: 'block',
          service: block.service,
          blockId: toHex(block.blockId),
          anchorHeight: block.anchorHeight,
        }),
      blockFate: (blockId, fate) => {
        if (fate.state !== 'accepted' && fate.state !== 'refused' && fate.state !== 'registered') return;
        const reason = fate.state === 'refused' ? fate.reason : undefined;
        // For display; only the accountant's own blocks are announced this early, all others by the chain.
        runner.accountant?.blockNews(blockId, fate.state, reason).catch(() => undefined);
      },
    },
  });

  const others = node.otherApis.map((url) => clientOf(url, 1, 5_000));
  const chain = chainOfApi(clientOf(node.apiUrl, 3, 10_000), transport, others);
  const powHash = async (header: Bytes, anchorHeight: number): Promise<Bytes> => {
    if (stratum.epochLength === undefined) throw new Error('there is no template yet that tells the epoch');
    const epoch = powEpoch(anchorHeight, stratum.epochLength);
    await verifier.prepare(epoch);
    return verifier.hash(epoch, header);
  };
  if (values.payoutsPaused) await pausePayouts(sql, true);
  const { instanceName: name = hostname() } = values;
  const mail = mailOptions(values);
  const mailTally = emptyTally();
  const walletClient = createWalletClient({ ...wallet, address });
  const runner = new TermRunner(
    {
      network,
      poolAddress: payload,
      sliceCuts: values.sliceCuts,
      windowThousandths: values.window,
      services: SERVICES.map(serviceNumber),
      maxFeePerMass: node.isEmbedded ? undefined : BigInt(values.maxFeePerMass),
      feePpm: new Map([
        [serviceNumber('pplns'), BigInt(values.feePplns)],
        [serviceNumber('solo'), BigInt(values.feeSolo)],
      ]),
      databaseUrl,
      holder: `${name} ${journal.bootId}`,
      payoutMin: values.payoutMin,
      payoutIntervalMillis: values.payoutInterval,
      shareDays: values.shareDays,
      chartDays: values.chartDays,
      silentMillis: values.silentAfter,
      minerWebhooks: values.minerWebhooks,
      ...(mail === undefined ? {} : { mails: { publicUrl: mail.publicUrl, poolName: values.poolName } }),
      webhooks: { urls: values.webhook, secret: webhookSecret(values) },
    },
    {
      sql,
      source,
      chain,
      wallet: walletClient,
      connections: async () => connectionsByName(await shared.instances()),
      published,
      log: log.child('books'),
      now: steadyMillis,
      wall: wallMillis,
      ...(node.isEmbedded ? {} : { powHash }),
      ...(mail === undefined ? {} : { openMailer: await loadSmtp(mail.server, mail.from), mailTally }),
    },
  );
  started('books', () => runner.close());

  const poolKey = await openPoolKey(keyPath, { sql, log: log.child('receipts'), claimed });
  const offer = poolKey === null ? {} : { receipts: { key: poolKey.publicKey, api: values.publicUrl ?? '' } };
  // Miners and blocks get the name from the start; pages follow an edit at once.
  const poolName = (await editedPoolName(sql)) ?? values.poolName;
  const pool = { pool: { payout: payload, address, name: poolName }, ...offer };
  const { sources } = node;
  const followBans = () => followLoggedBans(shared, () => readLoggedBans(sql), steadyMillis);
  await followBans();
  const stratum = await startPoolStratum({ ...values, poolName }, pool, {
    ...dependencies,
    bootId,
    verifier,
    sources,
    sink,
    shared,
  });
  const receipts =
    poolKey === null
      ? undefined
      : new ReceiptMaker(
          { network: network.name, directory: join(values.dataDir, 'journal') },
          {
            sql,
            outbox,
            key: poolKey,
            log: log.child('receipts'),
            deliver: (delivery) => stratum.receipts(delivery),
          },
        );

  let figures: StratumFigures | undefined;
  const connections = () => connectionsOf(figures);
  const report = async () => {
    figures = await stratum.figures();
    await shared.report({
      instance: journal.bootId,
      name,
      version,
      startedMillis,
      atMillis: steadyMillis(),
      accountant: runner.term !== undefined,
      ready: figures.ready,
      height: figures.headHeight,
      connections: connections(),
      ...counts,
      waiting: outbox.waiting,
    });
  };
  await report();
  every(REPORT_MILLIS, report, 'figures', dependencies);
  every(CHAIN_MILLIS, look, 'the chain', dependencies);
  every(BANS_MILLIS, followBans, 'bans of operators', dependencies);
  every(FLUSH_MILLIS, () => refusals.flush(sql), 'refused shares', dependencies);
  every(FLUSH_MILLIS, () => best.flush(sql), 'best shares', dependencies);
  every(FLUSH_MILLIS, () => keep.round(), 'journals', dependencies);
  every(SLICE_MILLIS, () => outbox.marks.look(ends), 'slices that closed', dependencies);
  every(SLICE_MILLIS, async () => receipts?.round(), 'receipts', dependencies);
  // On a full disk, journals kept only for a restore are deleted at once.
  every(FULL_DISK_MILLIS, async () => journal.failure && keep.round(), 'room for the journal', dependencies);

  const downloads = await Downloads.open(values.downloads);
  started('downloads', () => downloads.close());
  await startedWithMinimum(sql, values.payoutMin, steadyMillis(), view);
  const api = await openPoolApi(
    {
      terms: {
        name: values.poolName,
        network: network.name,
        address,
        feePpm: { pplns: values.feePplns, solo: values.feeSolo },
        payoutMin: values.payoutMin,
        payoutIntervalMillis: values.payoutInterval,
        windowThousandths: values.window,
        sliceCuts: values.sliceCuts,
      },
      network: network.name,
      config: shownOptions(values),
      minerWebhooks: values.minerWebhooks,
      sendsMail: mail !== undefined,
      publicUrl: values.publicUrl,
    },
    {
      sql,
      shared,
      chain: () => view,
      log: log.child('api'),
      now: steadyMillis,
      wall: wallMillis,
      connect: () => connectDocument(values, stratum, downloads),
      connections: (search) => stratum.connections(search),
      wallet: walletClient,
      published,
      node: client,
      isAccountant: () => runner.term !== undefined,
      audit: auditInThread({
        databaseUrl,
        node: { url: node.apiUrl, identity: node.isEmbedded ? [] : values.nodeIdentity },
        wallet: { url: wallet.url, tokenFile: wallet.tokenFile },
      }),
    },
  );
  started('api', () => api.close());
  const metrics = new Metrics('svc_pool');
  addProcessMetrics(metrics, version);
  const update = poolMetrics(metrics, {
    sql,
    api,
    connections,
    farms: () => farmsOf(figures),
    waiting: () => outbox.waiting,
    kept: () => keep.bytes,
    damaged: () => keep.damaged,
    isAccountant: () => runner.term !== undefined,
    headHeight: () => figures?.headHeight ?? 0,
    unread,
    mails: mail === undefined ? undefined : () => mailTally,
  });
  await update().catch(() => undefined);
  every(FLUSH_MILLIS / 2, update, 'metrics', dependencies);
  const upkeep = upkeepMetrics(metrics, {
    dataDir: values.dataDir,
    certificate: values.tlsCert,
    wallet: walletClient,
    wall: wallMillis,
  });
  void upkeep().catch(() => undefined);
  every(UPKEEP_MILLIS, upkeep, 'figures of the upkeep', dependencies);
  const token = new OperatorToken(values.operatorTokenFile ?? join(values.dataDir, 'operator.token'), {
    log: log.child('operator'),
  });
  await token.ensure();
  const web = await startWeb(
    {
      listen: values.webBind,
      prefix: values.webPath,
      proxies: values.trustedProxy,
      dashboard: values.dashboard ?? BUILT_PAGE,
      title: poolName,
      version,
      metrics: values.metrics,
      rate: PUBLIC_RATE_LIMIT,
    },
    {
      routes: api.routes,
      token,
      metrics,
      log: log.child('web'),
      now: steadyMillis,
      stratum: (...upgrade) => stratum.handleUpgrade(...upgrade),
      live: (request, socket, head, client) => api.live.upgrade(request, socket, head, client),
      ready: () => figures?.ready ?? false,
      first: api.figures,
      status: api.status,
      downloads,
    },
  );
  started('web', () => web.close());
  log.info('web', { host: web.address.host, port: web.address.port, path: values.webPath || '/' });
  return {
    stratum,
    web: web.address,
    poolAddress: address,
    databaseUrl,
    sql,
    isAccountant: () => runner.term !== undefined,
  };
}

/**
 * With two chains nothing starts; if a node that answers later is on another chain, the pool ends. `claimed` is the chain,
 * once a node has named it.
 */
async function watchChains(
  values: PoolValues,
  keyPath: string,
  transport: NodeTransport,
  dependencies: PoolDependencies,
): Promise<{ readonly claimed: Promise<string> }> {
  const named = (option: '--node' | '--node-api', urls: readonly string[]) => urls.map((url) => ({ option, url }));
  const nodes = [...named('--node', values.node), ...named('--node-api', values.nodeApi)];
  const claimed = Promise.withResolvers<string>();
  const chains = new NodeChains(nodes, {
    transport,
    log: dependencies.log.child('nodes'),
    claim: async (chainId) => {
      await claimChain(values.dataDir, chainId);
      await claimKey(keyPath, chainId, dependencies.log.child('receipts'));
      claimed.resolve(chainId);
    },
  });
  await chains.look();
  const look = () => chains.look().catch((error: Error) => dependencies.fault(error.message));
  every(CHAIN_MILLIS, look, 'chains of the nodes', dependencies);
  return { claimed: claimed.promise };
}

function connectDocument(values: PoolValues, stratum: StratumServer, downloads: Downloads): ConnectDocument {
  const port = (service: string, kind: 'tcp' | 'ws') =>
    stratum.addresses.find((address) => address.service === service && address.kind === kind)?.port ?? null;
  return {
    api_version: 1,
    services: SERVICES.map((service) => ({
      service,
      port: port(service, 'tcp'),
      tls: values.tlsCert !== undefined,
      websocket_port: port(service, 'ws'),
      websocket_path: `stratum/${service}`,
      fixed: values.fixedWork
        .filter((fixed) => fixed.service === service)
        .map((fixed) => ({ port: fixed.port, work: String(fixed.work) })),
    })),
    downloads: downloads.list.map((file) => ({ ...file, path: `downloads/${file.name}` })),
  };
}

function farmsOf(figures: StratumFigures | undefined): { farms: number; farmRigs: number } {
  const all = { farms: 0, farmRigs: 0 };
  for (const { farms, farmRigs } of figures?.listeners ?? []) {
    all.farms += farms;
    all.farmRigs += farmRigs;
  }
  return all;
}

function connectionsOf(figures: StratumFigures | undefined): Record<string, number> {
  const counts: Record<string, number> = { pplns: 0, solo: 0 };
  for (const listener of figures?.listeners ?? [])
    for (const [service, count] of Object.entries(listener.byService)) counts[service] = (counts[service] ?? 0) + count;
  return counts;
}
