/** The API put together: views over the database, the board of hash rates, live events, and the loop that keeps them fresh. */
import type { NetworkName } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Sql } from '../database/connect.ts';
import type { SharedState } from '../shared/shared-state.ts';
import { RateBoard } from '../stats/rates.ts';
import { AnswerCache } from './answer-cache.ts';
import { ChartView } from './chart-view.ts';
import { EventFollower } from './event-follower.ts';
import { LedgerView } from './ledger-view.ts';
import { LiveHub, type PoolEvent } from './live.ts';
import { MinerView } from './miner-view.ts';
import { operatorRoutes } from './operator-routes.ts';
import { PayoutThreshold } from './payout-threshold.ts';
import { type ChainView, type PoolTerms, PoolView } from './pool-view.ts';
import { ProofMaker } from './proofs.ts';
import { publicRoutes } from './public-routes.ts';
import type { Route } from './route.ts';

export type PoolApiOptions = {
  readonly terms: PoolTerms;
  readonly network: NetworkName;
  readonly config: Readonly<Record<string, unknown>>;
  readonly refreshMillis?: number;
};

export type PoolApiDependencies = {
  readonly sql: Sql;
  readonly shared: SharedState;
  readonly chain: () => ChainView | undefined;
  readonly log: Logger;
  readonly now: () => number;
  readonly onEvent?: (event: PoolEvent) => void;
};

export interface PoolApi {
  readonly routes: readonly Route[];
  readonly live: LiveHub;
  readonly rates: RateBoard;
  close(): Promise<void>;
}

const REFRESH_MILLIS = 5_000;

export async function openPoolApi(options: PoolApiOptions, dependencies: PoolApiDependencies): Promise<PoolApi> {
  const { sql, shared, chain, log, now } = dependencies;
  const { network, terms } = options;
  const rates = new RateBoard({ sql, now });
  const pool = new PoolView(terms, { sql, rates, now, chain, instances: () => shared.instances() });
  const live = new LiveHub();
  const miners = new MinerView({ network }, { sql, rates });
  const routes = [
    ...publicRoutes({
      sql,
      pool,
      ledger: new LedgerView({ sql }),
      miners,
      charts: new ChartView({ sql, rates, now }),
      proofs: new ProofMaker({ network }, { sql }),
      thresholds: new PayoutThreshold({ network, least: terms.payoutMin }, { sql, now }),
      live,
      cache: new AnswerCache({}, { now }),
    }),
    ...operatorRoutes({ sql, shared, now, config: options.config }),
  ];
  const follower = new EventFollower({
    sql,
    log,
    onEvent: (event) => {
      live.event(event);
      dependencies.onEvent?.(event);
    },
  });
  const refresh = async () => {
    try {
      await pool.refresh();
      live.figures('pool', pool.document);
    } catch (error) {
      log.warn('figures could not be refreshed', { reason: (error as Error).message });
    }
  };
  await refresh();
  await follower.start();
  let refreshing = Promise.resolve();
  let isRefreshing = false;
  const timer = setInterval(() => {
    if (isRefreshing) return;
    isRefreshing = true;
    refreshing = refresh().finally(() => {
      isRefreshing = false;
    });
  }, options.refreshMillis ?? REFRESH_MILLIS);
  return {
    routes,
    live,
    rates,
    async close() {
      clearInterval(timer);
      live.close();
      await refreshing;
      await follower.close();
    },
  };
}
