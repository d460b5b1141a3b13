/** Every option of svc-pool and its default, in one place: help, config file and docs/pool.md come from here. */
import { stratumOptions } from '../bridge/options.ts';
import { parseAddress } from '../protocol/address.ts';
import { parseCoins } from '../protocol/amount.ts';
import { MAX_TAG } from '../protocol/ledger/tag.ts';
import { NETWORK_NAMES } from '../protocol/network.ts';
import { isApiUrl } from '../protocol/stratum/receipt-messages.ts';
import { readAddressRange } from '../runtime/clients/client-address.ts';
import {
  choice,
  duration,
  flag,
  integer,
  listenAddress,
  listenAddressOrOff,
  type OptionTable,
  parsed,
  path,
  readHttpUrl,
  repeated,
  size,
  text,
  type ValuesOf,
} from '../runtime/command-line/command-line.ts';
import { logOptions } from '../runtime/log/log.ts';
import { nodeIdentityOption } from '../runtime/node-client/node-identity.ts';
import type { Service } from './journal/journal-record.ts';
import { mailboxFault } from './mail/mailbox.ts';
import { readSmtpServer, SMTP_URL } from './mail/smtp-server.ts';

const LISTENERS = 'Listeners';
const NODE = 'Node and wallet';
const MONEY = 'Books and payouts';
const MANY = 'Database and instances';

const url = (protocols: readonly string[], example: string) => (word: string) => {
  const found = URL.canParse(word) ? new URL(word) : undefined;
  if (found === undefined || !protocols.includes(found.protocol)) throw new Error(`must be a URL such as ${example}`);
  return word.replace(/\/+$/, '');
};

/** In the form that miners accept (stratum S33). */
const publicUrl = (word: string): string => {
  if (word === '' || !isApiUrl(word))
    throw new Error('must be a URL such as https://pool.example, without user, query or fragment');
  return word.replace(/\/+$/, '');
};

/** Percent with up to four decimals, kept in parts per million. */
export const readPercent = (word: string): number => {
  const match = /^(\d{1,3})(?:\.(\d{1,4}))?$/.exec(word);
  const ppm = match === null ? Number.NaN : Number(match[1]) * 10_000 + Number((match[2] ?? '').padEnd(4, '0'));
  if (!(ppm <= 1_000_000)) throw new Error(`must be a percentage from 0 to 100 such as 0.75, not '${word}'`);
  return ppm;
};
const percent = (settings: { help: string; default: string }) =>
  parsed({ ...settings, group: MONEY, placeholder: 'PERCENT' }, readPercent);

/** Expected blocks with up to three decimals, kept in thousandths. */
const readWindow = (word: string): bigint => {
  const match = /^(\d{1,6})(?:\.(\d{1,3}))?$/.exec(word);
  const thousandths =
    match === null ? 0n : BigInt(match[1] as string) * 1000n + BigInt((match[2] ?? '').padEnd(3, '0'));
  if (thousandths < 1n) throw new Error(`must be a number of expected blocks such as 8 or 2.5, not '${word}'`);
  return thousandths;
};

export const readPoolName = (word: string): string => {
  if (!new RegExp(`^[A-Za-z0-9 ._/+-]{1,${MAX_TAG}}$`).test(word))
    throw new Error(`must be 1 to ${MAX_TAG} letters, digits, spaces or . _ / + -, not '${word}'`);
  return word;
};

export const readPayoutMin = (word: string): bigint => {
  const atoms = parseCoins(word);
  if (atoms < 1n) throw new Error('must be more than nothing');
  return atoms;
};

/** The error never repeats the value: it may contain a password. */
const smtpUrl = (word: string): string => {
  if (readSmtpServer(word) === undefined) throw new Error(SMTP_URL);
  return word;
};

const mailFrom = (word: string): string => {
  const fault = mailboxFault(word);
  if (fault !== undefined) throw new Error(fault);
  return word;
};

/** A port where the share work is fixed. */
export type FixedWork = {
  readonly service: Service;
  readonly port: number;
  readonly work: bigint;
  readonly text: string;
};

const readFixedWork = (word: string): FixedWork => {
  const [, service = 'pplns', port = '', work = ''] = /^(?:(pplns|solo):)?(\d{1,5})=([1-9]\d{0,38})$/.exec(word) ?? [];
  if (Number(port) < 1 || Number(port) > 65_535)
    throw new Error(`must be a port and a number of hashes such as 28722=1000000000, not '${word}'`);
  return { service: service as Service, port: Number(port), work: BigInt(work), text: word };
};

const readPrefix = (word: string): string => {
  if (!/^(\/[A-Za-z0-9._~-]+)*\/?$/.test(word)) throw new Error(`must be a path such as /pool, not '${word}'`);
  return word.replace(/\/$/, '');
};

export const poolOptions = {
  network: choice({ help: 'which network', default: 'development' }, NETWORK_NAMES),
  dataDir: path({ help: 'journal, embedded database, node and wallet', default: '.data/pool', placeholder: 'DIR' }),
  poolName: parsed(
    { help: 'shown to miners, and in blocks whose miner has no tag', placeholder: 'NAME', default: 'svc-pool' },
    readPoolName,
  ),
  instanceName: parsed(
    {
      help: 'name of this instance on the operator’s page, for several on one machine (default: the name of the machine)',
      placeholder: 'NAME',
    },
    readPoolName,
  ),
  pplnsListen: listenAddressOrOff({ help: 'stratum, PPLNS', group: LISTENERS, default: '127.0.0.1:28720' }),
  pplnsListenWs: listenAddressOrOff({ help: 'the same over WebSocket', group: LISTENERS, default: '127.0.0.1:28721' }),
  soloListen: listenAddressOrOff({ help: 'stratum, solo', group: LISTENERS, default: '127.0.0.1:28730' }),
  soloListenWs: listenAddressOrOff({ help: 'the same over WebSocket', group: LISTENERS, default: '127.0.0.1:28731' }),
  fixedWork: repeated(
    parsed(
      {
        help: 'a further port, on the host of --pplns-listen, where every share has this work; solo:PORT=HASHES for solo',
        group: LISTENERS,
        placeholder: 'PORT=HASHES',
      },
      readFixedWork,
    ),
  ),
  webBind: listenAddress({
    help: 'API, dashboard and metrics',
    group: LISTENERS,
    default: '127.0.0.1:28740',
    formerly: 'web-listen',
  }),
  webPath: parsed(
    { help: 'path prefix of all of it', group: LISTENERS, default: '/', placeholder: 'PATH' },
    readPrefix,
  ),
  trustedProxy: repeated(
    parsed(
      { help: 'web proxy that must name its clients with X-Forwarded-For', group: LISTENERS, placeholder: 'CIDR' },
      readAddressRange,
    ),
  ),
  dashboard: path({
    help: 'folder of the built dashboard (default: build/dashboard of this program)',
    group: LISTENERS,
    placeholder: 'DIR',
  }),
  downloads: path({
    help: "folder of files for miners, such as the archives of pack:miner: served with their checksums, named in the page's steps",
    group: LISTENERS,
    placeholder: 'DIR',
  }),
  metrics: flag({ help: 'serve /metrics on the web listener', group: LISTENERS, default: true }),
  node: repeated(
    parsed(
      { help: 'mining listener of a node; without one a node is embedded', group: NODE, placeholder: 'URL' },
      readHttpUrl('http://127.0.0.1:28702'),
    ),
  ),
  nodeApi: repeated(
    parsed(
      {
        help: 'public API of that node; others, named after it, must agree with it about rewards',
        group: NODE,
        placeholder: 'URL',
        default: 'http://127.0.0.1:28701',
      },
      readHttpUrl('http://127.0.0.1:28701'),
    ),
  ),
  nodeIdentity: nodeIdentityOption(NODE),
  wallet: parsed(
    {
      help: "wallet daemon that holds the pool's money; without one a wallet is embedded",
      group: NODE,
      placeholder: 'URL',
    },
    readHttpUrl('http://127.0.0.1:28703'),
  ),
  walletTokenFile: path({ help: 'token of the wallet daemon', group: NODE }),
  poolAddress: parsed(
    {
      help: 'address of the wallet that blocks pay and payouts spend from; asked of the wallet at the first start',
      group: NODE,
      placeholder: 'ADDRESS',
    },
    (word) => {
      parseAddress(word);
      return word;
    },
  ),
  powMode: choice({ help: 'full keeps the dataset in memory, light only its cache', group: NODE, default: 'full' }, [
    'full',
    'light',
  ]),
  feePplns: percent({ help: 'fee of PPLNS; a higher one than before holds after a day of notice', default: '1' }),
  feeSolo: percent({ help: 'fee of solo; a higher one than before holds after a day of notice', default: '1' }),
  window: parsed(
    {
      help: 'PPLNS window (W): the work of this many expected blocks',
      group: MONEY,
      placeholder: 'BLOCKS',
      default: '8',
    },
    readWindow,
  ),
  sliceCuts: integer({
    help: 'cuts per slice; never change it for an existing pool',
    group: MONEY,
    min: 1,
    max: 100_000,
    default: 240,
  }),
  payoutMin: parsed(
    { help: 'smallest balance that is paid out', group: MONEY, placeholder: 'COINS', default: '1' },
    readPayoutMin,
  ),
  maxFeePerMass: integer({
    help: 'hold a reward with more fees than this, in atoms per mass, when one node alone names it',
    group: MONEY,
    min: 10,
    max: 1_000_000_000,
    default: 1_000,
  }),
  payoutsPaused: flag({
    help: 'start with payouts paused until the operator resumes them; for use after a database was restored',
    group: MONEY,
  }),
  // Miners give a pool a day and two intervals to pay (books rule 29): one that is changed from a longer one would be accused.
  payoutInterval: duration({
    help: 'time between two rounds of payouts, at most a day',
    group: MONEY,
    max: '1d',
    default: '1h',
  }),
  shareDays: integer({ help: 'days that raw shares are kept', group: MONEY, min: 1, max: 3650, default: 7 }),
  database: parsed(
    { help: 'PostgreSQL server; without one it is embedded', group: MANY, placeholder: 'URL' },
    url(['postgres:', 'postgresql:'], 'postgres://user:password@host/pool'),
  ),
  journalKeep: duration({
    help: 'how long a journal stays after the books have it; a database restored from a copy of that age catches up by itself',
    group: MANY,
    default: '1d',
  }),
  journalKeepSize: size({
    help: 'most disk space for journals that the books already have',
    group: MANY,
    default: '16GiB',
  }),
  redis: parsed(
    { help: 'Redis server; needed by more than one instance', group: MANY, placeholder: 'URL' },
    url(['redis:', 'rediss:'], 'redis://:PASSWORD@127.0.0.1:6379'),
  ),
  redisPrefix: text({ help: 'prefix of all keys in Redis', group: MANY, default: 'svc-pool' }),
  poolKeyFile: path({
    help: 'key that receipts are signed with, made if missing (default: DATA-DIR/pool.key); the same in all instances',
    placeholder: 'FILE',
  }),
  publicUrl: parsed(
    { help: 'where miners reach the web listener; sent to miners that ask for receipts', placeholder: 'URL' },
    publicUrl,
  ),
  operatorTokenFile: path({ help: 'token of the operator routes, made if missing (default: DATA-DIR/operator.token)' }),
  webhook: repeated(
    parsed(
      { help: 'URL that gets events of blocks, payouts and silent workers', placeholder: 'URL' },
      readHttpUrl('https://example.org/hook'),
    ),
  ),
  webhookSecretFile: path({ help: 'key that webhooks are signed with' }),
  minerWebhooks: choice(
    {
      help: 'webhooks that miners set for themselves: https to the internet; private: http and your own network too; or off',
      default: 'public',
    },
    ['public', 'private', 'off'],
  ),
  smtpUrl: parsed({ help: 'mail server, for e-mail to miners; without one none is sent', placeholder: 'URL' }, smtpUrl),
  smtpUrlFile: path({ help: 'file with that URL, where it has a password', placeholder: 'FILE' }),
  mailFrom: parsed({ help: 'sender of the mails', placeholder: 'ADDRESS' }, mailFrom),
  silentAfter: duration({ help: 'a worker without a share for this long is called silent', default: '15m' }),
  chartDays: integer({ help: 'days of charts by worker and miner', min: 1, max: 3650, default: 90 }),
  ...stratumOptions,
  ...logOptions,
} as const satisfies OptionTable;

export type PoolValues = ValuesOf<typeof poolOptions>;
