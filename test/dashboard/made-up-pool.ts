/** Documents of a pool that is made up, as many rows as a test wants: for the page without a pool behind it (served-page.ts). */
import type {
  BlocksDocument,
  ChartDocument,
  ConnectDocument,
  EarningsDocument,
  MinerDocument,
  MinersDocument,
  NotificationsDocument,
  PaymentsDocument,
  PoolBlock,
  PoolDocument,
  ServiceName,
  WorkersDocument,
} from '../../pool/api/documents.ts';
import type { Answers } from './served-page.ts';

const NOW = Date.now();
const NO_CHANNEL = { state: 'none', last_success_millis: null, last_failure_millis: null, failure: null } as const;
export const MARKUP = '<img src=x onerror=alert(1)>&amp;"\'';
export const rates = (rate: number) => ({ ten_minutes: rate, hour: rate, day: rate });
export const address = (i: number) => `dsvc1q${i.toString(36).padStart(84, 'q')}`;

const service = (name: ServiceName) => ({
  service: name,
  fee_ppm: 10_000,
  fee_changes: [],
  window_thousandths: 12_000,
  window_changes: [{ window_thousandths: 4_500, from_slice: 60_000, from_height: 14_400_000 }],
  miners: 10_000,
  workers: 30_000,
  hash_rate: rates(4.2e12),
  blocks_found: 123_456,
  blocks_paid: 120_000,
  effort: 0.87,
  luck: { hundred: 1.04, day: 0.98 },
  last_block_millis: NOW - 3000,
});
export const POOL: PoolDocument = {
  api_version: 1,
  name: MARKUP,
  network: 'development',
  pool_address: address(0),
  services: [service('pplns'), service('solo')],
  network_figures: {
    height: 12_345_678,
    hash_rate: 9e13,
    hash_rate_millis: 240_000,
    block_work: '123456789012',
    synced: true,
  },
  payouts: { minimum: '100000000', interval_seconds: 3600, paused: false, pause_note: null },
  notice: null,
  paid_atoms: '1234567890123456789',
  since_millis: NOW - 9e9,
  cuts_until_paid: 12,
  slice_cuts: 240,
  now_millis: NOW,
};
export const CONNECT: ConnectDocument = {
  api_version: 1,
  services: [
    {
      service: 'pplns',
      port: 1,
      tls: false,
      websocket_port: null,
      websocket_path: 'stratum/pplns',
      fixed: [{ port: 2, work: '1000000000' }],
    },
  ],
  downloads: [
    { name: 'svc-miner.tar.gz', bytes: 60_000_000, sha256: '0'.repeat(64), path: 'downloads/svc-miner.tar.gz' },
  ],
};
export const block = (i: number): PoolBlock => ({
  block_id: i.toString(16).padStart(96, '0'),
  service: 'pplns',
  anchor_height: 1_000_000 + i,
  slice: i,
  found_millis: NOW - i * 1000,
  finder: address(i),
  worker: MARKUP,
  state: 'paid',
  reason: MARKUP,
  effort: 1,
  reward: '781250000',
  credited: true,
});
const MINER: MinerDocument = {
  api_version: 1,
  address: address(1),
  since_millis: NOW - 9e9,
  hash_rate: rates(1e9),
  online: true,
  workers: 10_000,
  accepted: 1,
  stale: 0,
  rejected: 0,
  last_share_millis: NOW,
  balance: '1',
  in_flight: '0',
  paid: '0',
  advance: '0',
  advanced: '0',
  pending_estimate: '0',
  best_share: null,
  luck: [{ service: 'pplns', expected: 12.5, found: 14, probability: 0.75 }],
  payout_minimum: '100000000',
  payout_minimums: [],
};
const CHART: ChartDocument = {
  api_version: 1,
  seconds_per_point: 600,
  points: Array.from({ length: 4320 }, (_, i) => ({
    at_millis: NOW - i * 600_000,
    seconds: 600,
    hash_rate: 1e9 + i,
    workers: 1,
    shares: 1,
  })).reverse(),
};
/** A coin more on each day, the last day is today. */
export const EARNINGS: EarningsDocument = {
  api_version: 1,
  days: Array.from({ length: 30 }, (_, i) => ({
    at_millis: (Math.floor(NOW / 86_400_000) - 29 + i) * 86_400_000,
    amount: String((i + 1) * 100_000_000),
  })),
};

const worker = (i: number) => ({
  name: i === 0 ? MARKUP : `rig${i}`,
  service: 'pplns' as const,
  online: true,
  hash_rate: rates(1e6 * i),
  accepted: i,
  stale: 0,
  rejected: 0,
  last_share_millis: NOW,
});

/** The pool's node: a cut a second, and a work block for each of so many cuts. */
export function chainAnswers(cuts: number): Record<string, object> {
  const head = { api_version: 1, finalized_height: cuts };
  const rates = { cuts: 96, span_millis: 96_000, cut_millis: 1_000, hashrate: '9000', block_work: '123456' };
  const workBlock = (height: number) => ({
    block_id: height.toString(16).padStart(96, '0'),
    anchor_height: height,
    payout: address(height),
    tag: '',
    parents: [(height - 1).toString(16).padStart(96, '0')],
    transactions: 0,
    reward: { state: (['paid', 'pending', 'expired'] as const)[height % 3] },
  });
  return {
    'node/v1/chain/rates': { ...head, ...rates, target: '', registered_blocks: 96 },
    'node/v1/economics/emission': { ...head, work_half: '100000000' },
    'node/v1/blocks/recent': { ...head, blocks: Array.from({ length: 80 }, (_, i) => workBlock(cuts - i)) },
  };
}

/** `ten thousand`: everything in one answer, worse than the pool would ever send. */
export function answers(rows: number): Answers {
  const many = <T>(make: (i: number) => T): T[] => Array.from({ length: rows }, (_, i) => make(i));
  const lists: Record<string, object> = {
    pool: POOL,
    'pool/chart': CHART,
    blocks: { api_version: 1, blocks: many(block), next_cursor: 'next' } satisfies BlocksDocument,
    miners: {
      api_version: 1,
      miners: many((i) => ({ address: address(i), workers: i, hash_rate: rates(i * 1e6), last_share_millis: NOW })),
      next_cursor: 'next',
    } satisfies MinersDocument,
    [`miners/${address(1)}`]: MINER,
    [`miners/${address(1)}/chart`]: CHART,
    [`miners/${address(1)}/workers`]: { api_version: 1, workers: many(worker) } satisfies WorkersDocument,
    [`miners/${address(1)}/notifications`]: {
      api_version: 1,
      webhooks: true,
      mail: true,
      webhook: { state: 'failing', last_success_millis: NOW - 9e6, last_failure_millis: NOW, failure: 'refused' },
      discord: NO_CHANNEL,
      telegram: NO_CHANNEL,
      ntfy: NO_CHANNEL,
    } satisfies NotificationsDocument,
    [`miners/${address(1)}/earnings`]: EARNINGS,
    [`miners/${address(1)}/credits`]: { api_version: 1, credits: [] },
    payments: {
      api_version: 1,
      payments: many((i) => ({
        payout_id: `p${i}`,
        state: 'finalized' as const,
        address: address(i),
        amount: '100',
        transaction_id: 'ab'.repeat(48),
        created_millis: NOW,
        final_height: i,
      })),
    } satisfies PaymentsDocument,
  };
  return (path) => lists[path];
}
