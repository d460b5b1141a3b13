/** The options of `svcd`: the one place of their names, defaults and help texts. */
import { parseAddress } from '../protocol/address.ts';
import { parseCoins } from '../protocol/amount.ts';
import { MIN_INTERVAL_CUTS } from '../protocol/ledger/genesis.ts';
import { INTERVAL_CUTS, NETWORK_NAMES, POW_EPOCH_CUTS, REGISTRATION_WINDOW } from '../protocol/network.ts';
import { ATTENDANCE_WINDOWS } from '../protocol/staking/limits.ts';
import type { Output } from '../protocol/transactions/transaction.ts';
import { readAddressRange } from '../runtime/clients/client-address.ts';
import {
  choice,
  flag,
  integer,
  listenAddressOrOff,
  parsed,
  path,
  readListenAddress,
  repeated,
  size,
  text,
} from '../runtime/command-line/command-line.ts';
import { hostNameOption } from '../runtime/door/host-name.ts';
import { logOptions } from '../runtime/log/log.ts';
import { DEVELOPMENT_DEFAULTS, EMBEDDED_VALIDATORS } from './genesis/development.ts';
import { networkOptions } from './network/network-options.ts';
import { NODE_DEFAULTS } from './node-defaults.ts';
import { snapshotOptions } from './snapshot/snapshot-options.ts';
import { STORAGE_MODES } from './store/storage-mode.ts';
import { validatorOptions } from './validator/validator-options.ts';

const CHAIN = 'Development chain';

export const storeOptions = {
  network: choice({ help: 'which network', default: 'development' }, NETWORK_NAMES),
  dataDir: path({ help: 'where the chain is kept', default: '.data/node', placeholder: 'DIR' }),
} as const;

/** ADDRESS=COINS */
function readFund(word: string): Output {
  const [address = '', coins = '', ...more] = word.split('=');
  if (more.length > 0 || coins === '') throw new Error('must be ADDRESS=COINS');
  return { address: parseAddress(address, 'development').payload, amount: parseCoins(coins) };
}

const intervalCuts = integer({
  help: 'cuts of an interval, a multiple of 12; 34560 on every other network. With fewer than 120 a validator that restarts is jailed',
  group: CHAIN,
  min: MIN_INTERVAL_CUTS,
  max: INTERVAL_CUTS,
  multipleOf: ATTENDANCE_WINDOWS,
  default: INTERVAL_CUTS,
});

export const runOptions = {
  ...storeOptions,
  genesis: path({ help: 'genesis document of the chain (svcd genesis)', placeholder: 'FILE' }),
  apiBind: listenAddressOrOff({ help: 'public API', group: 'Listeners', default: '127.0.0.1:28701' }),
  public: flag({ help: 'serve the API with the limits of a public service', group: 'Listeners' }),
  browserOrigin: repeated(text({ help: 'web origin that may use the API', group: 'Listeners', placeholder: 'ORIGIN' })),
  trustedProxy: repeated(
    parsed(
      { help: 'proxy that must name its clients with X-Forwarded-For', group: 'Listeners', placeholder: 'CIDR' },
      readAddressRange,
    ),
  ),
  hostName: hostNameOption('Listeners'),
  miningBind: listenAddressOrOff({
    help: 'mining listener, for this machine only',
    group: 'Listeners',
    default: '127.0.0.1:28702',
  }),
  metricsBind: parsed(
    {
      help: 'metrics listener; port 28790 when only an address is given',
      group: 'Listeners',
      placeholder: 'HOST[:PORT]',
    },
    (word) => readListenAddress(word, 28_790),
  ),
  powMode: choice({ help: 'full keeps the dataset in memory, light only its cache', default: 'full' }, [
    'full',
    'light',
  ]),
  storage: choice(
    {
      help: 'what is kept of old cuts: full keeps all blocks, archive all certificates too, pruned the last 1440 cuts',
      default: 'full',
    },
    STORAGE_MODES,
  ),
  ...snapshotOptions,
  ...networkOptions,
  ...validatorOptions,
  verifyThreads: integer({ help: 'threads that check proof of work', min: 1, max: 64, default: 1 }),
  signatureThreads: integer({
    help: 'threads that check signatures',
    min: 1,
    max: 64,
    default: NODE_DEFAULTS.signatureThreads,
  }),
  mempoolSize: size({ help: 'memory for waiting transactions', default: '256MiB' }),
  cutMillis: integer({
    help: 'milliseconds from cut to cut',
    group: CHAIN,
    min: 20,
    max: 600_000,
    default: NODE_DEFAULTS.cutMillis,
  }),
  powEpochLength: integer({
    help: 'cuts of a PoW epoch',
    group: CHAIN,
    min: 1,
    max: 1_000_000_000,
    default: POW_EPOCH_CUTS,
  }),
  initialWork: integer({
    help: 'hashes per block at the start',
    group: CHAIN,
    min: 1,
    max: 1_000_000_000_000,
    default: Number(DEVELOPMENT_DEFAULTS.initialWork),
  }),
  minimumWork: integer({
    help: 'least hashes per block',
    group: CHAIN,
    min: 1,
    max: 1_000_000_000_000,
    default: Number(DEVELOPMENT_DEFAULTS.minimumWork),
  }),
  intervalCuts,
  fund: repeated(
    parsed({ help: 'coins for an address in a new chain', group: CHAIN, placeholder: 'ADDRESS=COINS' }, readFund),
  ),
  ...logOptions,
} as const;

export const rebuildOptions = storeOptions;

/** ADDRESS=COINS of whatever network the genesis is for. */
export function readGrant(word: string): { address: string; amount: bigint } {
  const [address = '', coins = '', ...more] = word.split('=');
  if (more.length > 0 || coins === '') throw new Error('must be ADDRESS=COINS');
  return { address, amount: parseCoins(coins) };
}

export const genesisOptions = {
  network: storeOptions.network,
  out: path({ help: 'file to write; an existing one is never replaced', default: 'genesis.json', placeholder: 'FILE' }),
  validator: repeated(
    text({
      help: 'registration of a validator: svc-wallet validator-genesis-registration writes it',
      placeholder: 'FILE',
    }),
  ),
  developmentValidators: integer({
    help: 'validators with 1,000,000 coins each and publicly known keys, for tests only',
    min: 0,
    max: EMBEDDED_VALIDATORS,
    default: 0,
  }),
  fund: repeated(parsed({ help: 'coins for an address', placeholder: 'ADDRESS=COINS' }, readGrant)),
  timestampMillis: integer({ help: 'time of cut 0; now when 0', min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 }),
  powEpochLength: runOptions.powEpochLength,
  initialWork: runOptions.initialWork,
  minimumWork: runOptions.minimumWork,
  intervalCuts,
} as const;

export const pruneOptions = {
  ...storeOptions,
  keepCuts: integer({
    help: 'keep the bodies of this many cuts',
    min: REGISTRATION_WINDOW,
    max: 1_000_000_000,
    default: 34_560,
  }),
} as const;
