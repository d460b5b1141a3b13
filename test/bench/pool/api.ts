/**
 * The pool's API with 10,000 active miners and 30 days of history: two workers each, 420,000 blocks, a slice and a credit list
 * every ten minutes. Clients are a process of their own; answers come as they do in production, kept for a few seconds each.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NO_RATE_LIMIT } from '../../../node/api/rate-limit.ts';
import { OperatorToken } from '../../../pool/api/operator/operator-token.ts';
import { openPoolApi } from '../../../pool/api/pool-api.ts';
import { startWeb } from '../../../pool/api/web.ts';
import { ensureAccounts } from '../../../pool/books/made-accounts.ts';
import { packCredits, packWork } from '../../../pool/books/packed.ts';
import type { Sql, Transaction } from '../../../pool/database/connect.ts';
import { LocalSharedState } from '../../../pool/shared/shared-state.ts';
import { packBucket } from '../../../pool/stats/packed-work.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { sumTree } from '../../../protocol/crypto/sum-tree.ts';
import { Metrics } from '../../../runtime/metrics/metrics.ts';
import { accountOf, addressOf } from '../../bridge/stratum-client.ts';
import { absentWallet } from '../../pool/absent-wallet.ts';
import { openBooks } from '../../pool/books-bed.ts';
import { quietLog } from '../../quiet-log.ts';
import type { LoadOrder, LoadResult } from '../api-load.ts';
import type { Bench } from '../harness.ts';

const MINERS = 10_000;
const DAYS = 30;
const SLICES_A_DAY = 144;
const BLOCKS_A_DAY = 14_000;
const PAYOUTS_A_DAY = 1_500;
/** Slices whose lists hold everybody; older ones hold a hundred accounts each, which only saves disk here. */
const FULL_SLICES = SLICES_A_DAY;
const SECONDS = 10;

async function fill(sql: Transaction): Promise<void> {
  // What is filled in fits by construction: no check of it, no trigger.
  await sql`set local session_replication_role = replica`;
  await sql`set local statement_timeout = 0`;
  const numbers = Array.from({ length: MINERS }, (_, i) => i);
  const ids = new Map(
    await ensureAccounts(
      sql,
      numbers.map((i) => toHex(accountOf(i))),
      'development',
    ),
  );
  await sql`update accounts set balance = id * 1000, paid = id * 100000`;
  await sql`insert into workers (account_id, service, name, accepted, work, last_share_at)
    select id, 0, 'rig-' || n, 100000, 1000000000, now() from accounts, generate_series(1, 2) as n`;
  const workers = (await sql<{ id: number }[]>`select id from workers order by id`).map((row) => row.id);
  const packed = Buffer.from(packBucket(new Map(workers.map((id) => [id, { shares: 6, work: BigInt(1_000 + id) }]))));
  for (const [tier, kept] of [
    [60, 15],
    [600, 9],
    [3600, 30],
  ] as const)
    await sql`insert into stats_recent (tier, bucket, version, packed) select ${tier},
      floor(extract(epoch from now()) / ${tier})::int - n, nextval('stats_versions'), ${packed} from generate_series(0, ${kept}) as n`;
  const today = Math.floor(Date.now() / 86_400_000);
  for (const [table, column, from] of [
    ['worker_days', 'worker_id', 'workers'],
    ['account_days', 'account_id', 'accounts'],
  ] as const)
    await sql`insert into ${sql(table)} (${sql(column)}, day, hours) select id, day, array_fill(123456789::numeric, array[24])
      from ${sql(from)}, generate_series(${today - DAYS}::int, ${today - 1}::int) as day`;
  for (const tier of [600, 3600])
    await sql`insert into pool_history select ${tier}, service, floor(extract(epoch from now()) / ${tier})::int - n, 60000, 1000000000,
      ${2 * MINERS}, ${MINERS} from generate_series(0, 1) as service, generate_series(0, ${(DAYS * 86_400) / tier}::int) as n`;
  await sql`insert into blocks (block_id, service, account_id, worker_id, anchor_height, slice, target_work, effort_work, found_at,
      state, reward, reward_transaction, reward_output, settled_height, credit_list)
    select sha384(int8send(n)), 0, 1 + n % ${MINERS}::int, 1 + n % ${2 * MINERS}::int, n / 4, n / 97, 1000000, 1000000,
      now() - n * interval '6.17 seconds', 'paid', 5000000, sha384(int8send(n)), 0, n / 4, 1
    from generate_series(1, ${DAYS * BLOCKS_A_DAY}::bigint) as n`;
  await sql`insert into block_totals select service, state, count(*) from blocks group by service, state`;
  const rows = numbers
    .map((i) => ({ payload: toHex(accountOf(i)), value: BigInt(1_000 + i) }))
    .sort((a, b) => (a.payload < b.payload ? -1 : 1))
    .map(({ payload, value }) => ({ payload, accountId: ids.get(payload) as number, value }));
  const tree = (list: typeof rows) =>
    sumTree(list.map((row) => ({ key: new Uint8Array(Buffer.from(row.payload, 'hex')), value: row.value })));
  for (const [list, from, to] of [
    [rows.slice(0, 100), 0, DAYS * SLICES_A_DAY - FULL_SLICES],
    [rows, DAYS * SLICES_A_DAY - FULL_SLICES, DAYS * SLICES_A_DAY],
  ] as const) {
    const { root } = tree(list);
    const hash = Buffer.from(root.hash);
    const parts = (of: string) =>
      sql.unsafe(`(select jsonb_agg(jsonb_build_object('slice', p, 'total', '${root.sum}', 'counted', '${root.sum}'))
      from generate_series(${of} - 1, ${of} - 12, -1) as p)`);
    await sql`insert into slices (service, number, window_work, opened_height, closed_height, total, root, leaves,
        slice_cuts, window_thousandths, fee_ppm, target, previous, chain)
      select 0, n, 12000000, n * 240, n * 240 + 240, ${String(root.sum)}::numeric, ${hash}, ${Buffer.from(packWork(list))},
        240, 8000, 0, ${Buffer.alloc(32, 255)}, ${hash}, ${hash}
      from generate_series(${from}::int, ${to - 1}::int) as n`;
    await sql`insert into credit_lists (service, slice, blocks, reward, fee, fee_ppm, credited, window_parts, root, credits, made_height)
      select 0, n, 97, ${root.sum}, 0, 0, ${root.sum}, ${parts('n')}, ${hash}, ${Buffer.from(packCredits(list))}, n * 240 + 400
      from generate_series(${from}::int, ${to - 1}::int) as n where n >= 12`;
  }
  await sql`insert into payouts (id, state, fee, transaction_id, final_height, created_at, updated_at)
    select gen_random_uuid(), 'finalized', 1000, sha384(int8send(n)), n, now() - n * interval '57 seconds', now()
    from generate_series(1, ${DAYS * PAYOUTS_A_DAY}::bigint) as n`;
  await sql`insert into payout_items select id, 1 + (row_number() over (order by created_at) * 7 + k)::int % ${MINERS}::int, 1000000
    from payouts, generate_series(0, 6) as k on conflict do nothing`;
}

async function serve(sql: Sql) {
  const api = await openPoolApi(
    {
      terms: {
        name: 'bench',
        network: 'development',
        address: addressOf(0),
        feePpm: { pplns: 10_000, solo: 10_000 },
        payoutMin: 1_000n,
        payoutIntervalMillis: 3_600_000,
        windowThousandths: 8_000n,
        sliceCuts: 240,
      },
      network: 'development',
      config: {},
    },
    {
      sql,
      shared: new LocalSharedState({ resumeMillis: 1, resumeSessions: 1 }, Date.now),
      chain: () => ({
        height: 1_000_000,
        targetWork: 1_000_000n,
        hashesPerSecond: 1_000_000n,
        rateMillis: 240_000,
        synced: true,
        atMillis: Date.now(),
        newestMillis: 0,
      }),
      connect: () => ({ api_version: 1, services: [], downloads: [] }),
      connections: async () => ({ all: 0, found: 0, rows: [] }),
      wallet: absentWallet('none here'),
      isAccountant: () => true,
      audit: () => Promise.reject(new Error('not measured here')),
      log: quietLog,
      now: Date.now,
      wall: Date.now,
    },
  );
  const web = await startWeb(
    {
      listen: { host: '127.0.0.1', port: 0 },
      prefix: '',
      proxies: [],
      dashboard: '/nowhere',
      title: 'bench',
      version: 'bench',
      metrics: false,
      rate: NO_RATE_LIMIT,
    },
    {
      routes: api.routes,
      token: new OperatorToken('/nowhere/token', { log: quietLog }),
      metrics: new Metrics('svc_pool'),
      log: quietLog,
      now: Date.now,
      ready: () => true,
      live: (request, socket, head, client) => api.live.upgrade(request, socket, head, client),
    },
  );
  return {
    port: web.address.port,
    async close() {
      await web.close();
      await api.close();
    },
  };
}

export async function benchApi(b: Bench): Promise<void> {
  const books = await openBooks();
  const from = performance.now();
  await books.sql.begin(fill);
  await books.sql.unsafe('set statement_timeout = 0; analyze');
  b.note(`history made in ${Math.round((performance.now() - from) / 1000)} s`);
  const web = await serve(books.sql);
  const load = spawn(process.execPath, [fileURLToPath(new URL('../api-load.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: load.stdout })[Symbol.asyncIterator]();
  const run = async (order: LoadOrder): Promise<LoadResult> => {
    load.stdin.write(`${JSON.stringify(order)}\n`);
    return JSON.parse((await lines.next()).value as string) as LoadResult;
  };
  const get = (path: string) => `GET /api/v1${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
  // Each miner is asked for once or twice: hardly anything comes from what is kept.
  const each = (path: (address: string) => string) =>
    Array.from({ length: 5_000 }, (_, i) => get(path(addressOf((i * 7_919) % MINERS))));
  const last = DAYS * SLICES_A_DAY - 1;
  const works: Record<string, string[]> = {
    pool: [get('/pool')],
    'pool-chart': [get('/pool/chart?hours=720')],
    blocks: [get('/blocks')],
    miners: Array.from({ length: 50 }, (_, i) => get(`/miners${i === 0 ? '' : `?cursor=${i * 100}-0`}`)),
    miner: each((address) => `/miners/${address}`),
    workers: each((address) => `/miners/${address}/workers`),
    credits: each((address) => `/miners/${address}/credits`),
    chart: each((address) => `/miners/${address}/chart?hours=720`),
    payments: each((address) => `/payments?address=${address}`),
    finds: each((address) => `/blocks?finder=${address}`),
    proof: each((address) => `/proofs/pplns/${last}?address=${address}`),
  };
  const order = { kind: 'requests', port: web.port, connections: 32 } as const;
  for (const [name, requests] of Object.entries(works)) {
    await run({ ...order, perSecond: 20, seconds: 1, requests });
    const result = await run({ ...order, perSecond: 100, seconds: SECONDS / 2, requests });
    if (result.failed > 0) throw new Error(`${result.failed} requests for ${name} failed`);
    b.figure(`api-${name}-p99`, result.p99, 'ms');
  }
  // What an open dashboard asks for, by many at once.
  const mixed = Array.from({ length: 5_000 }, (_, i) => {
    const list = Object.values(works)[i % Object.keys(works).length] as string[];
    return list[i % list.length] as string;
  });
  const mix = await run({ ...order, perSecond: 200, seconds: SECONDS, requests: mixed });
  b.figure('api-mix-served', mix.answered / mix.seconds, '1/s');
  b.figure('api-mix-p50', mix.p50, 'ms');
  b.figure('api-mix-p99', mix.p99, 'ms');
  load.stdin.end();
  await web.close();
  await books.close();
}
