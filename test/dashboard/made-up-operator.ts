/** The operator’s documents of a made-up pool (made-up-pool.ts). */
import type {
  BansDocument,
  InstancesDocument,
  OperatorLogDocument,
  OperatorStatus,
  QueueDocument,
  SettingsDocument,
} from '../../pool/api/operator/operator-documents.ts';
import type { Answers } from './served-page.ts';

const STATUS: OperatorStatus = {
  api_version: 1,
  sheet: {
    rewards: '0',
    uncredited: '0',
    balances: '0',
    in_flight: '0',
    paid: '0',
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

/** `bans`: the keys that are banned; the page lifts the first. All else that it asks to change is refused. */
export function operatorAnswers(bans: string[]): Answers {
  const refusal = { api_version: 1, error: { code: 'invalid', message: 'that is refused' } };
  const read: Record<string, () => object> = {
    status: () => STATUS,
    instances: () => ({ api_version: 1, instances: [] }) satisfies InstancesDocument,
    bans: () =>
      ({ api_version: 1, bans: bans.map((key) => ({ key, until_millis: Date.now() })) }) satisfies BansDocument,
    queue: () => ({ api_version: 1, payouts: [] }) satisfies QueueDocument,
    settings: () => SETTINGS,
    config: () => ({ api_version: 1, config: {} }),
    log: () => ({ api_version: 1, entries: [] }) satisfies OperatorLogDocument,
  };
  return (path, _, method) => {
    const [part, name = ''] = path.split('/');
    if (part !== 'operator') return undefined;
    if (method === 'GET') return read[name]?.();
    if (method !== 'DELETE' || name !== 'bans') return refusal;
    bans.shift();
    return { api_version: 1, lifted: true };
  };
}
