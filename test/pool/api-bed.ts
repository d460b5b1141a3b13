/** A pool's API over books that have shares, blocks, credits and figures in them: in PostgreSQL, behind the pool's own web listener. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NO_RATE_LIMIT } from '../../node/api/rate-limit.ts';
import { privateKeyOfSeed, rawPublicKey } from '../../node/ml-dsa.ts';
import { OperatorToken } from '../../pool/api/operator/operator-token.ts';
import { auditInThread } from '../../pool/api/operator/run-audit.ts';
import { openPoolApi, type PoolApi, type PoolApiOptions } from '../../pool/api/pool-api.ts';
import { startWeb, type WebListener } from '../../pool/api/web.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { recordPaid } from '../../pool/books/rewards.ts';
import type { JournalRecord } from '../../pool/journal/journal-record.ts';
import { LocalSharedState } from '../../pool/shared/shared-state.ts';
import { foldStats } from '../../pool/stats/fold.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { absentWallet } from './absent-wallet.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';

export const key = privateKeyOfSeed(pattern('key of a miner', 32));
export const keyed = keyAddressPayload(rawPublicKey(key));
export const NASTY = `<img src=x onerror=alert(1)>"';--`;

export const wallet = absentWallet('no wallet here');
const share = (payload: Uint8Array, worker: string, work: bigint): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: payload,
  worker,
  work,
  atMillis: Date.now(),
  identity: freshIdentity(),
});
export const block = (n: number): JournalRecord => ({
  kind: 'block',
  service: 'pplns',
  account: keyed,
  worker: NASTY,
  blockId: pattern(`block ${n}`, 48),
  anchorHeight: SLICE_CUTS + (n % 3),
  target: targetOfWork(1000n),
  extranonce: pattern('extranonce', 20),
  atMillis: Date.now() - 1000 * n,
});

export type PoolApiBed = {
  readonly books: BooksBed;
  readonly api: PoolApi;
  readonly web: WebListener;
  /** The operator's. */
  readonly token: string;
  close(): Promise<void>;
};

async function fill(books: BooksBed): Promise<void> {
  await books.sql`insert into settings values ('pool_address', ${formatAddress(account('pool'), 'development')})`;
  await books.height(0);
  const miners = Array.from({ length: 120 }, (_, i) => share(account(`m ${i}`), `rig.${i}`, BigInt(10 + i)));
  await books.take([share(keyed, NASTY, 500n), ...miners]);
  await books.height(SLICE_CUTS);
  await books.take(Array.from({ length: 7 }, (_, n) => block(n)));
  await books.height(2 * SLICE_CUTS);
  for (let n = 0; n < 7; n++)
    await books.fenced((transaction) =>
      recordPaid(transaction, {
        blockId: pattern(`block ${n}`, 48),
        transactionId: pattern(`reward ${n}`, 48),
        outputIndex: n,
        amount: 1_000_000n,
        height: 100,
      }),
    );
  const options = { sliceCuts: SLICE_CUTS };
  await books.fenced((transaction) => makeCredits(transaction, new ClosedWork(), options, 200));
  await books.fenced((transaction) => foldStats(transaction, Date.now()));
}

export async function openPoolApiBed(
  options: Pick<PoolApiOptions, 'refreshMillis' | 'minerWebhooks' | 'sendsMail'> = {},
): Promise<PoolApiBed> {
  const books = await openBooks();
  const directory = mkdtempSync(join(tmpdir(), 'svc-api-'));
  mkdirSync(join(directory, 'page', 'assets'), { recursive: true });
  writeFileSync(join(directory, 'page', 'index.html'), '<!doctype html><title>pool</title>');
  writeFileSync(join(directory, 'page', 'assets', 'main-abcdef12.js'), `export {};${' '.repeat(2000)}`);
  await fill(books);
  const api = await openPoolApi(
    {
      terms: {
        name: 'test pool',
        network: 'development',
        address: formatAddress(account('pool'), 'development'),
        feePpm: { pplns: 10_000, solo: 5_000 },
        payoutMin: 1_000n,
        payoutIntervalMillis: 60_000,
        windowThousandths: 1_000n,
        sliceCuts: SLICE_CUTS,
      },
      network: 'development',
      config: { fee: 1 },
      ...options,
    },
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
      wallet,
      connections: async () => ({ all: 0, found: 0, rows: [] }),
      isAccountant: () => true,
      audit: auditInThread({ databaseUrl: books.url }),
      log: quietLog,
      now: Date.now,
      wall: Date.now,
    },
  );
  await until(() => api.figures() !== undefined, { everyMillis: 2 });
  const operator = new OperatorToken(join(directory, 'token'), { log: quietLog });
  await operator.ensure();
  const token = readFileSync(join(directory, 'token'), 'utf8').trim();
  const web = await startWeb(
    {
      listen: { host: '127.0.0.1', port: 0 },
      prefix: '/p',
      proxies: [],
      dashboard: join(directory, 'page'),
      title: 'test',
      version: '1',
      metrics: true,
      rate: NO_RATE_LIMIT,
    },
    {
      routes: api.routes,
      token: operator,
      metrics: new Metrics('svc_pool'),
      log: quietLog,
      now: Date.now,
      ready: () => true,
      status: api.status,
      live: (request, socket, head, client) => api.live.upgrade(request, socket, head, client),
    },
  );
  const close = async () => {
    await web.close();
    await api.close();
    await books.close();
    rmSync(directory, { recursive: true, force: true });
  };
  return { books, api, web, token, close };
}
