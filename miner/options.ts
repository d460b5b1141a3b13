/** The option table of `svc-miner`: the one place of every option, its default and its help text. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Address, parseAddress } from '../protocol/address.ts';
import { parseCoins } from '../protocol/amount.ts';
import { checkTag } from '../protocol/ledger/tag.ts';
import { NETWORK_NAMES } from '../protocol/network.ts';
import { parseUsername, type Username } from '../protocol/stratum/username.ts';
import {
  type CommandSpec,
  choice,
  duration,
  flag,
  integer,
  listenAddressOrOff,
  parsed,
  path,
  readHttpUrl,
  repeated,
  text,
  type ValuesOf,
} from '../runtime/command-line/command-line.ts';
import { hostNameOption } from '../runtime/door/host-name.ts';
import { logOptions } from '../runtime/log/log.ts';
import { type Endpoint, parsePoolUrl } from './client/pool-url.ts';

const POOL = 'Pool';
const DEVICES = 'Devices';
const WATCH = 'Monitoring and control';
const INSTEAD = 'Instead of mining';

export type PoolOption = { readonly text: string; readonly endpoint: Endpoint };

function readUser(word: string): Username {
  const network = parseAddress(word.split('.')[0] as string).network;
  return parseUsername(word, network);
}

function readPin(word: string): string {
  const hex = word
    .replace(/^sha256[:=]/i, '')
    .replaceAll(':', '')
    .toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new Error('must be the SHA-256 of a certificate: 64 hex characters');
  return hex;
}

function readPoolKey(word: string): string {
  if (!/^([0-9a-f]{32}|[0-9a-f]{3904})$/.test(word))
    throw new Error('must be a key of 3,904 hex characters, or its short name of 32');
  return word;
}

/** `0,2` or `all`: numbers as --list-devices shows them. */
function readDevices(word: string): readonly number[] | 'all' {
  if (word === 'all') return 'all';
  const numbers = word.split(',').map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : Number.NaN));
  if (numbers.some(Number.isNaN))
    throw new Error(`must be 'all' or numbers of --list-devices such as 0,2, not '${word}'`);
  return [...new Set(numbers)].sort((a, b) => a - b);
}

const DATA_DIR = join('.cache', 'svc-miner');

export const defaultDataDir = (): string => join(homedir(), DATA_DIR);

/** `version` is spoken with a pool whose address names none. */
export const poolOption = (version: 1 | 2) =>
  repeated(
    parsed(
      {
        help: 'pool or bridge to mine at; further ones are fallbacks, in order of preference',
        group: POOL,
        short: 'o',
        placeholder: 'URL',
      },
      (word): PoolOption => ({ text: word, endpoint: parsePoolUrl(word, version) }),
    ),
  );

export const minerOptions = {
  pool: poolOption(1),
  user: parsed(
    { help: 'address that is paid, and a name for this rig', group: POOL, short: 'u', placeholder: 'ADDRESS[.WORKER]' },
    readUser,
  ),
  password: text({
    help: 'settings for the server: d=WORK fixes the share work, min=WORK sets its minimum, rate=HASHES announces the hash rate',
    group: POOL,
    short: 'p',
  }),
  tag: parsed(
    { help: 'text in the blocks you find, at most 20 characters', group: POOL, placeholder: 'TEXT' },
    checkTag,
  ),
  expectPayout: parsed(
    { help: 'refuse every job that does not pay this address', group: POOL, placeholder: 'ADDRESS' },
    (word): Address => parseAddress(word),
  ),
  tlsPin: repeated(
    parsed(
      { help: 'accept only a certificate with this SHA-256, whoever issued it', group: POOL, placeholder: 'SHA256' },
      readPin,
    ),
  ),
  tlsCa: path({
    help: 'authorities to trust instead of the system’s, as PEM; with the books of the pool and --node-api beside the system’s',
    group: POOL,
  }),
  poolApi: parsed(
    { help: 'where the API of the pool is, when it does not say so itself', group: POOL, placeholder: 'URL' },
    readHttpUrl('https://pool.example'),
  ),
  poolKey: parsed(
    {
      help: 'key that the pool signs receipts with, or its short name; otherwise the first one seen',
      group: POOL,
      placeholder: 'KEY',
    },
    readPoolKey,
  ),
  nodeApi: parsed(
    {
      help: 'API of a node that you trust: the pool’s books are also compared with the ledger',
      group: POOL,
      placeholder: 'URL',
    },
    readHttpUrl('http://127.0.0.1:28701'),
  ),
  payoutThreshold: parsed(
    {
      help: 'payout threshold to check the pool against, instead of the one that it states',
      group: POOL,
      placeholder: 'COINS',
    },
    parseCoins,
  ),
  checkBooks: flag({
    help: 'ask the pool for receipts and compare its books with them',
    group: POOL,
    default: true,
  }),
  devices: parsed(
    {
      help: 'numbers of --list-devices; by default all graphics cards, or the processor where there is none',
      group: DEVICES,
      placeholder: 'LIST',
    },
    readDevices,
  ),
  gpu: flag({ help: 'use graphics cards', group: DEVICES, default: true }),
  cpuThreads: integer({
    help: 'threads of the processor; 0 for none (by default 0 beside graphics cards, otherwise all cores)',
    group: DEVICES,
    max: 1_024,
  }),
  throttle: integer({
    help: 'percent of the time that the devices work; they rest in between, and the machine stays usable',
    group: DEVICES,
    placeholder: 'PERCENT',
    min: 5,
    max: 100,
    default: 100,
  }),
  light: flag({ help: 'mine on the processor without the 2 GiB dataset, about 40 times slower', group: DEVICES }),
  unsafeGpu: flag({
    help: 'switch off the bounds checks of the graphics driver layer: one percent faster',
    group: DEVICES,
  }),
  retune: flag({ help: 'discard the saved tuning of the graphics cards and tune them again', group: DEVICES }),
  watchdog: duration({ help: 'restart a device that counts no hashes for this long', group: DEVICES, default: '30s' }),
  dataDir: path({
    help: `datasets and tunings are kept here (default ~/${DATA_DIR})`,
    group: DEVICES,
    placeholder: 'DIR',
  }),
  listDevices: flag({ help: 'show the devices of this machine', group: INSTEAD }),
  benchmark: integer({
    help: 'measure the hash rate for this many seconds, without a pool',
    group: INSTEAD,
    placeholder: 'SECONDS',
    min: 1,
    max: 86_400,
  }),
  benchmarkJobs: duration({ help: 'change the job this often during --benchmark, as a pool does', group: INSTEAD }),
  json: flag({ help: 'answer --benchmark and --list-devices in JSON', group: INSTEAD }),
  network: choice(
    { help: 'network of --benchmark; when mining, the address names it', group: INSTEAD, default: 'mainnet' },
    NETWORK_NAMES,
  ),
  statusEvery: duration({ help: 'show the hash rate this often', group: WATCH, default: '60s' }),
  apiBind: listenAddressOrOff({
    help: 'JSON statistics at /v1/stats',
    group: WATCH,
    default: '127.0.0.1:28770',
    formerly: 'api-listen',
  }),
  apiToken: text({
    help: 'allow POST /v1/pause and /v1/resume with this bearer token',
    group: WATCH,
    placeholder: 'TOKEN',
  }),
  hostName: hostNameOption(WATCH),
  metricsBind: listenAddressOrOff({
    help: 'Prometheus metrics at /metrics',
    group: WATCH,
    default: '127.0.0.1:28793',
    formerly: 'metrics-listen',
  }),
  verbose: flag({ help: 'a line for each accepted share', group: WATCH, short: 'v' }),
  ...logOptions,
} as const;

export type MinerValues = ValuesOf<typeof minerOptions>;

export const minerCommand: CommandSpec<typeof minerOptions> = {
  name: 'svc-miner',
  summary: 'Mines with the graphics cards or the processor of this machine. `svc-miner self-test` checks them.',
  options: minerOptions,
  examples: [
    { line: 'svc-miner -o stratum+tcp://pool.example:28720 -u ADDRESS.rig1', says: 'mine at a pool' },
    {
      line: 'svc-miner -o stratum+tls://a.example -o b.example -u ADDRESS',
      says: 'with a second pool for when the first fails',
    },
    { line: 'svc-miner --benchmark 10', says: 'how fast is this machine?' },
  ],
};
