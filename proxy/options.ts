/** The option table of `svc-proxy`: towards rigs the stratum server's options, towards the pool the miner's. */
import { stratumOptions } from '../bridge/options.ts';
import { minerOptions, poolOption } from '../miner/options.ts';
import { MAX_RIGS } from '../protocol/stratum/farm.ts';
import {
  type CommandSpec,
  choice,
  flag,
  integer,
  listenAddress,
  listenAddressOrOff,
  type OptionTable,
  path,
  type ValuesOf,
} from '../runtime/command-line/command-line.ts';
import { hostNameOption } from '../runtime/door/host-name.ts';
import { logOptions } from '../runtime/log/log.ts';
import { MOST_SHARES_PER_SECOND } from './upstream-work.ts';

const { anchors: _anchors, farmRigs: _farmRigs, ...rigOptions } = stratumOptions;
const { user, expectPayout, tlsPin, tlsCa } = minerOptions;
const { poolApi, poolKey, nodeApi, payoutThreshold, checkBooks } = minerOptions;
const POOL = 'Pool';

export const proxyOptions = {
  // Farm sessions are in v2 alone.
  pool: poolOption(2),
  user: { ...user, help: 'address that all work is for, and a name for rigs that have none' },
  expectPayout,
  tlsPin,
  tlsCa,
  poolApi,
  poolKey,
  nodeApi,
  payoutThreshold,
  checkBooks,
  upstreamShares: integer({
    help: 'shares a second that the whole farm sends to the pool, about',
    group: POOL,
    min: 1,
    max: MOST_SHARES_PER_SECOND,
    default: 5,
  }),
  rigs: integer({
    help: 'rigs of one session at the pool; the pool may admit fewer',
    group: POOL,
    min: 1,
    max: MAX_RIGS,
    default: MAX_RIGS,
  }),
  keepAddresses: flag({
    help: 'rigs that log in with an address of their own work for that one, each with its own session at the pool',
    group: POOL,
  }),
  dataDir: path({
    help: 'datasets, what pools said of their books, and evidence are kept here',
    default: '.data/proxy',
    placeholder: 'DIR',
  }),
  listen: listenAddress({ help: 'stratum for rigs: v1, v2 and TLS on one port', default: '127.0.0.1:28780' }),
  listenWs: listenAddressOrOff({ help: 'stratum for rigs over WebSocket', default: '127.0.0.1:28781' }),
  statsBind: listenAddressOrOff({ help: 'statistics as JSON', default: '127.0.0.1:28772' }),
  webBind: listenAddressOrOff({ help: 'a page with the rigs and the pool', default: '127.0.0.1:28782' }),
  metricsBind: listenAddressOrOff({ help: 'metrics for Prometheus', default: '127.0.0.1:28794' }),
  hostName: hostNameOption('Options'),
  powMode: choice({ help: 'full keeps the dataset in memory, light only its cache', default: 'full' }, [
    'full',
    'light',
  ]),
  ...rigOptions,
  ...logOptions,
} as const satisfies OptionTable;

export type ProxyValues = ValuesOf<typeof proxyOptions>;

export const proxyCommand: CommandSpec<typeof proxyOptions> = {
  name: 'svc-proxy',
  summary: 'Many rigs behind one connection to a pool: each keeps its name and its own work.',
  options: proxyOptions,
  examples: [
    {
      line: 'svc-proxy -o stratum2+tcp://pool.example:28720 -u ADDRESS --listen 0.0.0.0:28780',
      says: 'for the rigs of this network',
    },
    {
      line: 'svc-proxy -o stratum2+tls://a.example -o stratum2+tls://b.example -u ADDRESS',
      says: 'with a second pool for when the first fails',
    },
  ],
};
