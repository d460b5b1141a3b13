/**
 * The programs that `npm start` runs, as they would run anywhere, each a separate process with its own log file, on a
 * development network whose cuts come every half second.
 */
import { join } from 'node:path';

export type Ports = Readonly<Record<PortName, number>>;

/** Every port, with the option that moves it. */
export const PORTS = {
  api: { port: 28701, option: '--api-port', what: 'the node’s public API' },
  mining: { port: 28702, option: '--mining-port', what: 'the node’s mining listener' },
  wallet: { port: 28703, option: '--wallet-port', what: 'the wallet daemon' },
  pplns: { port: 28720, option: '--pplns-port', what: 'the pool, PPLNS' },
  pplnsWs: { port: 28721, option: '--pplns-ws-port', what: 'the pool, PPLNS over WebSocket' },
  solo: { port: 28730, option: '--solo-port', what: 'the pool, solo' },
  soloWs: { port: 28731, option: '--solo-ws-port', what: 'the pool, solo over WebSocket' },
  web: { port: 28740, option: '--web-port', what: 'the dashboard' },
  bridge: { port: 28710, option: '--bridge-port', what: 'the bridge' },
  bridgeWs: { port: 28711, option: '--bridge-ws-port', what: 'the bridge over WebSocket' },
  bridgeStats: { port: 28771, option: '--bridge-stats-port', what: 'the bridge’s statistics' },
  proxy: { port: 28780, option: '--proxy-port', what: 'the proxy, with --proxy' },
  proxyStats: { port: 28772, option: '--proxy-stats-port', what: 'the proxy’s statistics, with --proxy' },
  proxyWeb: { port: 28782, option: '--proxy-web-port', what: 'the proxy’s page, with --proxy' },
  minerApi: { port: 28770, option: '--miner-api-port', what: 'the miner’s statistics' },
} as const;
export type PortName = keyof typeof PORTS;

const HOST = '127.0.0.1';

/** The pace of the development network, and how often the pool pays. */
export type Pace = { readonly cutMillis: number; readonly sliceCuts: number; readonly payoutInterval: string };

/** Slices of twelve seconds: a new user sees a credit soon. */
export const START_PACE: Pace = { cutMillis: 500, sliceCuts: 24, payoutInterval: '5s' };

/**
 * Of a validator; the first has the API of the node. They are also peers, which carry the heartbeats of all to the node
 * used for mining.
 */
export type ValidatorPorts = { readonly overlay: number; readonly api: number; readonly peers: number };

export type Part = {
  readonly name: string;
  readonly program: 'svcd' | 'svc-wallet' | 'svc-bridge' | 'svc-pool' | 'svc-proxy' | 'svc-miner';
  readonly words: readonly string[];
  /** Answers when the part is ready. */
  readonly ready: string;
  /** Shown to the user. */
  readonly where: string;
};

const at = (port: number) => `${HOST}:${port}`;
export const url = (port: number) => `http://${at(port)}`;

export const files = (data: string) => ({
  node: join(data, 'node'),
  poolWallet: join(data, 'pool-wallet.json'),
  minerWallet: join(data, 'miner-wallet.json'),
  pool: join(data, 'pool'),
  bridge: join(data, 'bridge'),
  proxy: join(data, 'proxy'),
  miner: join(data, 'miner'),
  logs: join(data, 'logs'),
  /** Genesis and keys of separate validators, and the data of those beside the first. */
  network: join(data, 'network'),
  validators: join(data, 'validators'),
});

const logTo = (data: string, name: string) => ['--log-file', join(files(data).logs, `${name}.log`)];

const runWords = (dataDir: string, pace: Pace) => [
  'run',
  '--network',
  'development',
  '--data-dir',
  dataDir,
  '--cut-millis',
  String(pace.cutMillis),
];

/** `more`: options of a new chain, or of a node that is one of separate validators. */
export function nodePart(data: string, ports: Ports, pace: Pace, more: readonly string[] = []): Part {
  // The pool's page may ask this node, so that a miner can check the pool's books against it.
  const listeners = [
    '--api-bind',
    at(ports.api),
    '--mining-bind',
    at(ports.mining),
    '--browser-origin',
    url(ports.web),
  ];
  return {
    name: 'node',
    program: 'svcd',
    words: [...runWords(files(data).node, pace), ...listeners, ...more, ...logTo(data, 'node')],
    ready: `${url(ports.api)}/health`,
    where: `API ${url(ports.api)}, mining listener ${url(ports.mining)}`,
  };
}

/** Keys, overlay and peers of one validator; each dials those after it, and has the first as a peer. */
function validatorWords(data: string, member: number, validators: readonly ValidatorPorts[]): string[] {
  const own = validators[member] as ValidatorPorts;
  const first = validators[0] as ValidatorPorts;
  return [
    '--config',
    join(files(data).network, `validator-${member}.json`),
    '--overlay-listen',
    at(own.overlay),
    ...validators.slice(member + 1).flatMap(({ overlay }) => ['--neighbour', at(overlay)]),
    '--p2p-listen',
    at(own.peers),
    ...(member === 0 ? [] : ['--bootstrap', `/ip4/${HOST}/tcp/${first.peers}`]),
  ];
}

/** Separate validators: the first is the node that wallet, pool and bridge talk to. */
export function validatorParts(data: string, ports: Ports, pace: Pace, validators: readonly ValidatorPorts[]): Part[] {
  const others = validators.slice(1).map(({ api, overlay }, i): Part => {
    const name = `validator-${i + 1}`;
    return {
      name,
      program: 'svcd',
      words: [
        ...runWords(join(files(data).validators, String(i + 1)), pace),
        '--api-bind',
        at(api),
        '--mining-bind',
        'off',
        '--signature-threads',
        '1',
        ...validatorWords(data, i + 1, validators),
        ...logTo(data, name),
      ],
      ready: `${url(api)}/health`,
      where: `API ${url(api)}, overlay ${at(overlay)}`,
    };
  });
  return [nodePart(data, ports, pace, validatorWords(data, 0, validators)), ...others];
}

export function walletPart(data: string, ports: Ports): Part {
  const words = ['daemon', '--file', files(data).poolWallet, '--service', url(ports.api), '--listen', at(ports.wallet)];
  return {
    name: 'wallet',
    program: 'svc-wallet',
    words: [...words, ...logTo(data, 'wallet')],
    ready: `${url(ports.wallet)}/health`,
    where: `JSON-RPC ${url(ports.wallet)}/v1/rpc`,
  };
}

export function poolPart(data: string, ports: Ports, pace: Pace): Part {
  return {
    name: 'pool',
    program: 'svc-pool',
    words: [
      'run',
      '--network',
      'development',
      '--data-dir',
      files(data).pool,
      '--pool-name',
      'Local pool',
      '--node',
      url(ports.mining),
      '--node-api',
      url(ports.api),
      '--wallet',
      url(ports.wallet),
      '--wallet-token-file',
      `${files(data).poolWallet}.token`,
      '--pplns-listen',
      at(ports.pplns),
      '--pplns-listen-ws',
      at(ports.pplnsWs),
      '--solo-listen',
      at(ports.solo),
      '--solo-listen-ws',
      at(ports.soloWs),
      '--web-bind',
      at(ports.web),
      // Miners ask there whether the books hold what was accepted.
      '--public-url',
      url(ports.web),
      '--slice-cuts',
      String(pace.sliceCuts),
      '--payout-min',
      '1',
      '--payout-interval',
      pace.payoutInterval,
      ...logTo(data, 'pool'),
    ],
    ready: `${url(ports.web)}/health`,
    where: `PPLNS ${at(ports.pplns)}, solo ${at(ports.solo)}`,
  };
}

export function bridgePart(data: string, ports: Ports): Part {
  const chain = ['--network', 'development', '--node', url(ports.mining)];
  const listeners = [
    '--listen',
    at(ports.bridge),
    '--listen-ws',
    at(ports.bridgeWs),
    '--stats-bind',
    at(ports.bridgeStats),
    '--metrics-bind',
    'off',
  ];
  return {
    name: 'bridge',
    program: 'svc-bridge',
    words: [...chain, ...listeners, '--data-dir', files(data).bridge, ...logTo(data, 'bridge')],
    ready: `${url(ports.bridgeStats)}/v1/stats`,
    where: `stratum ${at(ports.bridge)}`,
  };
}

/** Between the miner and the pool. */
export function proxyPart(data: string, ports: Ports, address: string): Part {
  const pool = ['-o', `stratum2+tcp://${at(ports.pplns)}`, '-u', address];
  const listeners = [
    '--listen',
    at(ports.proxy),
    '--listen-ws',
    'off',
    '--stats-bind',
    at(ports.proxyStats),
    '--web-bind',
    at(ports.proxyWeb),
    '--metrics-bind',
    'off',
  ];
  return {
    name: 'proxy',
    program: 'svc-proxy',
    words: [...pool, ...listeners, '--data-dir', files(data).proxy, ...logTo(data, 'proxy')],
    ready: `${url(ports.proxyStats)}/v1/stats`,
    where: `stratum ${at(ports.proxy)}, page ${url(ports.proxyWeb)}/`,
  };
}

/** `port`: where it mines. `throttle`: percent of the time. */
export function minerPart(
  data: string,
  ports: Ports,
  address: string,
  gpu: boolean,
  { port = ports.pplns, throttle }: { readonly port?: number; readonly throttle?: number | undefined } = {},
): Part {
  const device = [
    ...(gpu ? [] : ['--no-gpu', '--cpu-threads', '1']),
    ...(throttle === undefined ? [] : ['--throttle', String(throttle)]),
  ];
  const pool = ['-o', `stratum+tcp://${at(port)}`, '-u', `${address}.${gpu ? 'gpu' : 'cpu'}`];
  const listeners = ['--api-bind', at(ports.minerApi), '--metrics-bind', 'off', '--data-dir', files(data).miner];
  return {
    name: 'miner',
    program: 'svc-miner',
    words: [...pool, ...device, ...listeners, ...logTo(data, 'miner')],
    ready: `${url(ports.minerApi)}/v1/stats`,
    where: `${gpu ? 'graphics cards' : 'one CPU thread'}${throttle === undefined ? '' : ` at ${throttle} %`}, statistics ${url(ports.minerApi)}/v1/stats`,
  };
}
