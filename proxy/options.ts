/** The option table of `svc-proxy`: towards rigs the stratum server's options, towards the pool the miner's. */
import { stratumOptions } from '../bridge/options.ts';
import { minerOptions, type PoolOption } from '../miner/options.ts';
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
const { pool, user, expectPayout, tlsPin, tlsCa } = minerOptions;
const { poolApi, poolKey, nodeApi, payoutThreshold, checkBooks } = minerOptions;
const POOL = 'Pool';

export const proxyOptions = {
  pool,
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
  rigs: integer({ help: 'rigs to ask the pool for, at most', group: POOL, min: 1, max: 4_096, default: 4_096 }),
  keepAddresses: flag({
    help: 'rigs that log in with an address of their own work for that one, each with its own session at the pool',
    group: POOL,
  }),
  dataDir: path({ help: 'where datasets are kept', default: '.data/proxy', placeholder: 'DIR' }),
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

/** Farms are in v2 alone, so it is spoken unless the address says otherwise. */
export const endpointOf = ({ text, endpoint }: PoolOption) => ({
  ...endpoint,
  version: text.includes('protocol=v1') ? (1 as const) : (2 as const),
});
