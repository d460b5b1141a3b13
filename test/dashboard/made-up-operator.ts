/** The operator’s documents of a made-up pool (made-up-pool.ts). */
import type {
  AuditDocument,
  BansDocument,
  ConnectionsDocument,
  InstancesDocument,
  OperatorHistoryDocument,
  OperatorLogDocument,
  OperatorStatus,
  QueueDocument,
  SettingsDocument,
} from '../../pool/api/operator/operator-documents.ts';
import { address, MARKUP } from './made-up-pool.ts';
import type { Answers } from './served-page.ts';

const STATUS: OperatorStatus = {
  api_version: 1,
  sheet: {
    rewards: '135012345678901',
    uncredited: '0',
    balances: '0',
    in_flight: '0',
    paid: '135012345678901',
    pool_fees: '0',
    network_fees: '0',
    gap: '0',
  },
  wallet: { ready: true, reason: null, spendable: '0', outputs: 0 },
  payouts_paused: false,
  payouts_held: null,
  accounts_refused: [],
  accountant: { term: '1', holder: 'one', here: true },
};
const SETTINGS: SettingsDocument = {
  api_version: 1,
  settings: [
    { name: 'fee_solo', value: '1', file_value: '1', edited: false, changes: [] },
    { name: 'notice', value: null, file_value: null, edited: false, changes: [] },
  ],
};

const INSTANCE: InstancesDocument['instances'][number] = {
  instance: 'pool-1',
  boot_id: '0123456789abcdef',
  version: '0.1.0',
  ready: true,
  connections: 300,
  accepted: 1_234_567,
  rejected: 89,
  height: 12_345_678,
  waiting: 4,
  accountant: true,
  started_millis: Date.now() - 3_600_000,
  seen_millis: Date.now(),
};
const OTHER = { ...INSTANCE, instance: 'pool-2', boot_id: 'fedcba9876543210', ready: false, accountant: false };
const CONNECTION: ConnectionsDocument['connections'][number] = {
  ip: '203.0.113.5',
  service: 'pplns',
  address: address(1),
  worker: MARKUP,
  agent: 'svc-miner/1',
  since_millis: Date.now() - 60_000,
  accepted: 12_345,
  stale: 6,
  rejected: 7,
};
const CONNECTIONS: readonly (typeof CONNECTION)[] = [
  CONNECTION,
  { ...CONNECTION, ip: '2001:db8:1234:5678:9abc:def0:1234:5678', address: null, worker: '', agent: '' },
];

/** As long as names of machines are at the most. */
const LONG_NAME = `pool-2-${'x'.repeat(56)}`;
const MINUTE = 60_000;
/** The last hour by minutes, without the ten in the middle in which nobody kept the books. */
const history = (): OperatorHistoryDocument => ({
  api_version: 1,
  seconds_per_point: 60,
  points: Array.from({ length: 60 }, (_, i) => ({
    at_millis: Math.floor(Date.now() / MINUTE) * MINUTE - (59 - i) * MINUTE,
    accepted: 995,
    refused: i % 2 === 0 ? [{ result: 'unknown_job', count: 5 }] : [],
    books_behind: i === 59 ? 3 : 1,
    payouts_open: i === 59 ? 2 : 0,
    wallet_spendable: i === 59 ? '123456789000' : null,
    front_ends: [
      { name: 'pool-1', connections: i === 59 ? 250 : 300 },
      // Gone in the last minutes.
      ...(i < 58 ? [{ name: LONG_NAME, connections: 1_500 }] : []),
    ],
  })).filter((_, i) => i < 25 || i >= 35),
});

const NO_AUDIT: AuditDocument = {
  api_version: 1,
  state: 'idle',
  started_millis: null,
  ended_millis: null,
  progress: null,
  reason: null,
  result: null,
};
const AUDITS = {
  idle: NO_AUDIT,
  running: {
    ...NO_AUDIT,
    state: 'running',
    started_millis: Date.now(),
    progress: { part: 'slices', done: 1_200, of: 2_400 },
  },
  done: {
    ...NO_AUDIT,
    state: 'done',
    started_millis: Date.now(),
    ended_millis: Date.now() + 90_000,
    result: {
      slices: 2_400,
      lists: 300,
      accounts: 1_234,
      ledger: true,
      wallet: false,
      differences: 31,
      unread: 0,
      findings: [{ what: `slice 7 of pplns: ${'0'.repeat(96)}`, books: MARKUP, computed: '12', remedy: 'Restore it.' }],
      not_checked: { count: 1, first: ['payout 5: final in cut 900, and the books have read up to cut 880'] },
      owed: { count: 0, first: [] },
    },
  },
} satisfies Record<string, AuditDocument>;

/** `bans`: the keys that are banned; the page lifts the first. `audit`: how far the audit is that the page may start. All else that it asks to change is refused. */
export function operatorAnswers(bans: string[], audit: { state: keyof typeof AUDITS } = { state: 'idle' }): Answers {
  const refusal = { api_version: 1, error: { code: 'invalid', message: 'that is refused' } };
  const read: Record<string, (search: string | null) => object> = {
    status: () => STATUS,
    history,
    instances: () => ({ api_version: 1, instances: [INSTANCE, OTHER] }) satisfies InstancesDocument,
    bans: () =>
      ({ api_version: 1, bans: bans.map((key) => ({ key, until_millis: Date.now() })) }) satisfies BansDocument,
    connections: (search) => ({
      api_version: 1,
      all: 300,
      found: search === null ? 300 : 1,
      connections: search === null ? CONNECTIONS : CONNECTIONS.slice(0, 1),
    }),
    audit: () => AUDITS[audit.state],
    queue: () => ({ api_version: 1, payouts: [] }) satisfies QueueDocument,
    settings: () => SETTINGS,
    config: () => ({ api_version: 1, config: {} }),
    log: () => ({ api_version: 1, entries: [] }) satisfies OperatorLogDocument,
  };
  return (path, query, method) => {
    const [part, name = ''] = path.split('/');
    if (part !== 'operator') return undefined;
    if (method === 'GET') return read[name]?.(query.get('search'));
    if (name === 'audit') {
      audit.state = 'running';
      return AUDITS.running;
    }
    if (name === 'pay-now') return { api_version: 1, asked: true };
    if (method !== 'DELETE' || name !== 'bans') return refusal;
    bans.shift();
    return { api_version: 1, lifted: true };
  };
}
