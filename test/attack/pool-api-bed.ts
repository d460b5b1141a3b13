/** The pool's web listener over real books, with an address, workers, blocks and a credit list; its log is kept. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { NO_RATE_LIMIT, type RateLimits } from '../../node/api/rate-limit.ts';
import { OperatorToken } from '../../pool/api/operator/operator-token.ts';
import { auditInThread } from '../../pool/api/operator/run-audit.ts';
import { openPoolApi, type PoolApi } from '../../pool/api/pool-api.ts';
import { startWeb } from '../../pool/api/web.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { recordPaid } from '../../pool/books/rewards.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { LocalSharedState } from '../../pool/shared/shared-state.ts';
import { foldStats } from '../../pool/stats/fold.ts';
import { formatAddress } from '../../protocol/address.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { absentWallet } from '../pool/absent-wallet.ts';
import { account, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

export type PoolApiBed = {
  readonly base: string;
  readonly port: number;
  readonly api: PoolApi;
  readonly sql: Sql;
  readonly token: string;
  readonly address: string;
  /** Lines of level warning and above. */
  readonly lines: readonly string[];
};

export type PoolApiBedOptions = {
  accounts?: number;
  rate?: RateLimits;
  /** The first account, with the credit of the block, instead of a made-up one. */
  first?: Uint8Array;
  /** The folder of the page, instead of an empty one. */
  page?: string;
};

export async function openPoolApiBed(options: PoolApiBedOptions = {}): Promise<PoolApiBed> {
  const books = await openBooks();
  onTestFinished(() => books.close());
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'page'));
  writeFileSync(join(directory, 'page', 'index.html'), '<!doctype html><title>pool</title>');
  const names = Array.from({ length: options.accounts ?? 30 }, (_, i) =>
    i === 0 && options.first !== undefined ? options.first : account(`attack ${i}`),
  );
  const common = { service: 'pplns', worker: 'rig', atMillis: Date.now() } as const;
  const shares = () =>
    names.map((each) => ({ ...common, kind: 'share' as const, account: each, work: 100n, identity: freshIdentity() }));
  await books.height(0);
  await books.take(shares());
  await books.height(SLICE_CUTS);
  const blockId = pattern('attack block', 48);
  const found = { blockId, anchorHeight: SLICE_CUTS, target: targetOfWork(1000n), extranonce: pattern('extra', 20) };
  await books.take([...shares(), { ...common, kind: 'block', account: names[0] as Uint8Array, ...found }]);
  await books.height(2 * SLICE_CUTS);
  const paid = { transactionId: pattern('attack reward', 48), outputIndex: 0, amount: 1_000_000n, height: 100 };
  await books.fenced((transaction) => recordPaid(transaction, { blockId, ...paid }));
  await books.fenced((transaction) => makeCredits(transaction, new ClosedWork(), { sliceCuts: SLICE_CUTS }, 200));
  await books.fenced((transaction) => foldStats(transaction, Date.now()));
  const lines: string[] = [];
  const log = createLogger('test', { filter: readLevelFilter('warn'), format: 'text' }, {
    sink: (line: string) => void lines.push(line),
    now: Date.now,
  } as never);
  const terms = {
    name: 'test',
    network: 'development',
    address: formatAddress(account('pool'), 'development'),
    feePpm: { pplns: 10_000, solo: 5_000 },
    payoutMin: 1_000n,
    payoutIntervalMillis: 60_000,
    windowThousandths: 1_000n,
    sliceCuts: SLICE_CUTS,
  } as const;
  const api = await openPoolApi(
    { terms, network: 'development', config: {}, minerWebhooks: 'public', sendsMail: true },
    {
      sql: books.sql,
      shared: new LocalSharedState({ resumeMillis: 1, resumeSessions: 1 }, Date.now),
      chain: () => ({
        height: 9,
        targetWork: 1000n,
        hashesPerSecond: 5n,
        rateMillis: 40_000,
        synced: true,
        atMillis: Date.now(),
        newestMillis: 0,
      }),
      connect: () => ({ api_version: 1, services: [], downloads: [] }),
      connections: async () => ({ all: 0, found: 0, rows: [] }),
      wallet: absentWallet('no wallet here'),
      isAccountant: () => true,
      audit: auditInThread({ databaseUrl: books.url }),
      log,
      now: Date.now,
      wall: Date.now,
    },
  );
  onTestFinished(() => api.close());
  await until(() => api.figures() !== undefined, { everyMillis: 2 });
  const operator = new OperatorToken(join(directory, 'token'), { log });
  await operator.ensure();
  const web = await startWeb(
    {
      listen: { host: '127.0.0.1', port: 0 },
      prefix: '',
      proxies: [],
      dashboard: options.page ?? join(directory, 'page'),
      title: 'test',
      version: '1',
      metrics: true,
      rate: options.rate ?? NO_RATE_LIMIT,
    },
    {
      routes: api.routes,
      token: operator,
      metrics: new Metrics('svc_pool'),
      log,
      now: Date.now,
      ready: () => true,
      live: (request, socket, head, client) => api.live.upgrade(request, socket, head, client),
    },
  );
  onTestFinished(() => web.close());
  return {
    base: `http://127.0.0.1:${web.address.port}/api/v1`,
    port: web.address.port,
    api,
    sql: books.sql,
    token: readFileSync(join(directory, 'token'), 'utf8').trim(),
    address: formatAddress(names[0] as Uint8Array, 'development'),
    lines,
  };
}
