/**
 * Assembles the API: views over the database, the board of hash rates, live events, and the loop that refreshes them.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { StratumServer } from '../../bridge/stratum-server.ts';
import type { Language } from '../../protocol/languages.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { SteadyClock, WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Sql } from '../database/connect.ts';
import { Edits } from '../edits/edits.ts';
import type { PublishedTerms } from '../edits/published-terms.ts';
import { reignOf } from '../feed/positions.ts';
import type { PayoutWallet } from '../payout/payout-wallet.ts';
import { publicPoolKey } from '../receipts/pool-key.ts';
import type { InstanceFigures, SharedState } from '../shared/shared-state.ts';
import { RateBoard } from '../stats/rates.ts';
import type { WebhookReach } from '../webhooks/webhook-target.ts';
import { AnswerCache, keepingAnswers } from './answer-cache.ts';
import { booksRoutes } from './books/books-routes.ts';
import { BooksView } from './books/books-view.ts';
import { LedgerView } from './books/ledger-view.ts';
import { ProofMaker } from './books/proofs.ts';
import {
  type ConnectDocument,
  type LiveFrame,
  type PoolDocument,
  type StatusDocument,
  status as statusDocument,
} from './documents.ts';
import { MinerMail } from './miner/miner-mail.ts';
import { MinerView } from './miner/miner-view.ts';
import { MinerWebhook } from './miner/miner-webhook.ts';
import { NamedWorkers } from './miner/named-workers.ts';
import { PayoutThreshold } from './miner/payout-threshold.ts';
import { receiptRoutes } from './miner/receipt-routes.ts';
import { ReceiptView } from './miner/receipt-view.ts';
import { signedRoutes } from './miner/signed-routes.ts';
import { BookAudit } from './operator/book-audit.ts';
import { operatorRoutes } from './operator/operator-routes.ts';
import type { RunAudit } from './operator/run-audit.ts';
import { ChartView } from './public/chart-view.ts';
import { EventFollower } from './public/event-follower.ts';
import { feedRoutes } from './public/feeds.ts';
import { HistoryView } from './public/history-view.ts';
import { LiveHub, type PoolEvent } from './public/live.ts';
import { type NodeReads, nodeRoutes } from './public/node-routes.ts';
import { type ChainView, type PoolTerms, PoolView } from './public/pool-view.ts';
import { publicRoutes } from './public/public-routes.ts';
import { statusOf } from './public/status.ts';
import { type Route, route } from './route.ts';

export type PoolApiOptions = {
  readonly terms: PoolTerms;
  readonly network: NetworkName;
  readonly config: Readonly<Record<string, unknown>>;
  /** Absent: the operator routes are off. */
  readonly minerWebhooks?: WebhookReach | 'off';
  /** Whether the pool sends mails to miners; default false. */
  readonly sendsMail?: boolean;
  /** Of the pool's page, for links in feeds. */
  readonly publicUrl?: string | undefined;
  readonly refreshMillis?: number;
};

export type PoolApiDependencies = {
  readonly sql: Sql;
  readonly shared: SharedState;
  readonly chain: () => ChainView | undefined;
  readonly log: Logger;
  readonly now: SteadyClock;
  /** For times that a wallet on another machine compares with its own. */
  readonly wall: WallClock;
  readonly connect: () => ConnectDocument;
  readonly wallet: PayoutWallet;
  readonly published?: PublishedTerms;
  /** The pool's node; without it the API has no chain routes. */
  readonly node?: NodeReads;
  readonly isAccountant: () => boolean;
  /** The stratum server's; without one the operator has no list of them. */
  readonly connections: StratumServer['connections'];
  /** Audits the books beside the pool, when an operator asks for it. */
  readonly audit: RunAudit;
};

export interface PoolApi {
  readonly routes: readonly Route[];
  readonly live: LiveHub;
  readonly rates: RateBoard;
  /** What the route `pool` answers. */
  readonly figures: () => PoolDocument | undefined;
  /** How the pool is; needs neither the database nor Redis. */
  readonly status: (language?: Language) => Promise<StatusDocument>;
  close(): Promise<void>;
}

const REFRESH_MILLIS = 5_000;
const INSTANCES_MILLIS = 1_000;
/** How long the start waits for the first figures. */
const FIRST_FIGURES_MILLIS = 5_000;

export async function openPoolApi(options: PoolApiOptions, dependencies: PoolApiDependencies): Promise<PoolApi> {
  const { sql, shared, chain, log, now } = dependencies;
  const { network, terms } = options;
  const rates = new RateBoard({ sql, now });
  const edits = new Edits(terms, { sql, chain, now, published: dependencies.published });
  const pool = new PoolView(terms, { sql, rates, edited: () => edits.now, now, chain });
  const ledger = new LedgerView({ sql });
  const figures = (): LiveFrame | undefined =>
    pool.document === undefined ? undefined : { type: 'pool', data: pool.document };
  const live = new LiveHub({}, { first: figures, log });
  const edited = {
    network,
    get payoutMin() {
      return edits.now.payoutMin;
    },
    get least() {
      return edits.now.payoutMin;
    },
    webhooks: options.minerWebhooks ?? ('off' as const),
    sendsMail: options.sendsMail ?? false,
    get pool() {
      return edits.now.name;
    },
  };
  const signing = { sql, now: dependencies.wall };
  const miners = new MinerView(edited, { sql, rates, pool, now });
  const cache = new AnswerCache({}, { now });
  const proofs = new ProofMaker({ network }, { sql });
  const poolKey = () => publicPoolKey(sql);
  const books = new BooksView({ network, address: terms.address, poolKey }, { sql });
  const receipts = new ReceiptView({ network }, { sql, proofs, books, poolKey });
  let databaseMillis: number | undefined;
  let booksHeight: number | undefined;
  let instances: readonly InstanceFigures[] = [];
  const status = async (language?: Language): Promise<StatusDocument> => {
    // What Redis said last, where it does not answer at once.
    const asked = shared.instances().catch(() => instances);
    instances = await Promise.race([asked, sleep(INSTANCES_MILLIS, instances, { ref: false })]);
    const { document } = pool;
    return statusOf(
      { nowMillis: now(), instances, chain: chain(), databaseMillis, booksHeight, payouts: document?.payouts },
      language,
    );
  };
  const audit = new BookAudit({ run: dependencies.audit, now, warn: (...words) => log.warn(...words) });
  const routes = [
    route({
      method: 'GET',
      path: '/status',
      group: 'Pool',
      summary:
        'How the pool is: mining, node, database, books, payouts and each front end; answered without the database',
      answer: statusDocument,
      handle: () => status(),
    }),
    ...publicRoutes({
      pool,
      ledger,
      miners,
      charts: new ChartView({ sql, rates, now }),
      history: new HistoryView({ sql, now }),
      proofs,
      connect: dependencies.connect,
      now,
    }),
    ...feedRoutes({ ledger, poolName: () => edits.now.name, home: options.publicUrl, now: dependencies.wall }),
    ...signedRoutes({
      miners,
      thresholds: new PayoutThreshold(edited, { ...signing, chain }),
      workers: new NamedWorkers(edited, signing),
      webhooks: new MinerWebhook(edited, signing),
      mails: new MinerMail(edited, signing),
      offers: { webhooks: edited.webhooks !== 'off', mail: edited.sendsMail },
    }),
    ...booksRoutes({ books }),
    ...receiptRoutes({ receipts }),
    ...(dependencies.node === undefined ? [] : nodeRoutes(dependencies.node)),
    ...operatorRoutes({
      sql,
      shared,
      edits,
      now,
      chain,
      config: options.config,
      wallet: dependencies.wallet,
      isAccountant: dependencies.isAccountant,
      network,
      connections: dependencies.connections,
      audit,
    }),
  ].map((each) => keepingAnswers(each, cache));
  /** Events only say what changed; pages get the current document. */
  const tell = async ({ kind, data }: PoolEvent): Promise<void> => {
    if (live.pages === 0) return;
    if (kind.startsWith('block_')) {
      const block = await ledger.block((data as { block_id: string }).block_id);
      if (block === undefined) return;
      const { api_version: _, ...rest } = block;
      live.send({ type: 'block', data: rest });
    } else if (kind === 'payout_sent' || kind === 'payout_final') {
      for (const payment of await ledger.paymentsOf((data as { payout_id: string }).payout_id))
        live.send({ type: 'payment', data: payment });
    }
  };
  const follower = new EventFollower({
    sql,
    log,
    onEvent: (event) => void tell(event).catch(() => undefined),
  });
  const reignNow = reignOf(sql);
  let reign: string | undefined;
  /** At every new term the caches are cleared, because the database may have been replaced by an older copy. */
  const followReign = async () => {
    const now = await reignNow();
    if (now === reign) return;
    if (reign !== undefined) {
      for (const part of [rates, miners, proofs]) part.forget();
      cache.clear();
      await follower.goBack();
    }
    // Updated last, so that a failed refresh is repeated at the next check.
    reign = now;
  };
  const followSettings = async () => {
    await followReign();
    await edits.refresh();
  };
  const failed = (error: Error) => log.warn('figures could not be refreshed', { reason: error.message });
  const refresh = async () => {
    await followSettings();
    const [row] = await sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
    booksHeight = row === undefined ? undefined : Number(row.value);
    await pool.refresh();
    databaseMillis = now();
    const frame = figures();
    if (frame !== undefined) live.send(frame);
  };
  await followSettings().catch(failed);
  await follower.start();
  let refreshing = Promise.resolve();
  let isRefreshing = false;
  const begin = () => {
    if (isRefreshing) return;
    isRefreshing = true;
    refreshing = refresh()
      .catch(failed)
      .finally(() => {
        isRefreshing = false;
      });
  };
  begin();
  // Of very many workers they come later, and their routes say so until then.
  await Promise.race([refreshing, sleep(FIRST_FIGURES_MILLIS, undefined, { ref: false })]);
  const timer = setInterval(begin, options.refreshMillis ?? REFRESH_MILLIS);
  return {
    routes,
    live,
    rates,
    figures: () => pool.document,
    status,
    async close() {
      clearInterval(timer);
      live.close();
      await audit.close();
      await refreshing;
      await follower.close();
    },
  };
}
