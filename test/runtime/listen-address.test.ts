/** One reader of addresses for every option: what it takes, what it refuses, and that every program's options use it. */
import { connect, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { bridgeOptions } from '../../bridge/bridge.ts';
import { minerOptions } from '../../miner/options.ts';
import { type OverlayAddress, OverlayListeners } from '../../node/consensus/reach/overlay-listeners.ts';
import { networkPlan } from '../../node/network/network-options.ts';
import { runOptions } from '../../node/node-options.ts';
import { validatorPlan } from '../../node/validator/validator-options.ts';
import { poolOptions } from '../../pool/options.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type OptionTable, optionName, parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { type BindAddress, readListenAddress, readNetworkAddress } from '../../runtime/listen-address.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../../runtime/metrics/metrics-listener.ts';
import { daemonListen, daemonOptions, sessionOptions } from '../../wallet/command/options.ts';
import { silentLog } from '../node/bed.ts';

const PORT = 28_790;

/** The text, and what an option whose port is 28790 makes of it. */
const TAKEN: [string, string, number][] = [
  ['127.0.0.1', '127.0.0.1', PORT],
  ['127.0.0.1:7', '127.0.0.1', 7],
  ['0.0.0.0', '0.0.0.0', PORT],
  ['::1', '::1', PORT],
  ['::', '::', PORT],
  ['[::1]', '::1', PORT],
  ['[::1]:7', '::1', 7],
  ['fe80::1%eth0', 'fe80::1%eth0', PORT],
  ['2001:db8::7', '2001:db8::7', PORT],
  ['::ffff:10.0.0.1', '::ffff:10.0.0.1', PORT],
  ['localhost', 'localhost', PORT],
  ['localhost:0', 'localhost', 0],
  ['a-b.example.org:65535', 'a-b.example.org', 65_535],
  ['7', '127.0.0.1', 7],
];
const REFUSED = [
  '',
  ':7',
  '[::1',
  '::1]',
  '[::1]7',
  '[127.0.0.1]',
  '[name]:7',
  '10.0.0.1:65536',
  'name:',
  'name:x',
  '70000',
  '1.2.3',
  '300.1.1.1',
  '1.2.3.4.5',
  'a b',
  'a/b',
  'a:1:2',
  '-a',
  'http://a',
  '[]:7',
  'a'.repeat(64),
  '::1:x',
];

test.each(TAKEN)('%s is an address', (word, host, port) => {
  expect(readListenAddress(word, PORT)).toEqual({ host, port });
});

test.each(REFUSED)('%j is no address', (word) => {
  expect(() => readListenAddress(word, PORT)).toThrow('must be HOST or HOST:PORT');
  expect(() => readNetworkAddress(word)).toThrow('must be');
});

test('an option without a port of its own needs one in the text', () => {
  expect(() => readListenAddress('::1')).toThrow('must be HOST:PORT');
  expect(readListenAddress('[::1]:7')).toEqual({ host: '::1', port: 7 });
});

const read = (options: OptionTable, option: string, word: string): unknown => {
  const parsed = parseCommandLine({ name: 'x', summary: '', options }, [`--${option}`, word], () => '');
  if (parsed.kind !== 'run') throw parsed.kind === 'usage' ? parsed.error : new Error(parsed.kind);
  const property = option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return (parsed.values as Record<string, unknown>)[property];
};

const BINDS: [string, OptionTable, string, number][] = [
  ['svcd', runOptions, 'api-bind', 28_701],
  ['svcd', runOptions, 'mining-bind', 28_702],
  ['svcd', runOptions, 'metrics-bind', 28_790],
  ['svc-bridge', bridgeOptions, 'listen', 28_710],
  ['svc-bridge', bridgeOptions, 'listen-ws', 28_711],
  ['svc-bridge', bridgeOptions, 'stats-bind', 28_771],
  ['svc-bridge', bridgeOptions, 'metrics-bind', 28_792],
  ['svc-pool', poolOptions, 'pplns-listen', 28_720],
  ['svc-pool', poolOptions, 'pplns-listen-ws', 28_721],
  ['svc-pool', poolOptions, 'solo-listen', 28_730],
  ['svc-pool', poolOptions, 'solo-listen-ws', 28_731],
  ['svc-pool', poolOptions, 'web-bind', 28_740],
  ['svc-miner', minerOptions, 'api-bind', 28_770],
  ['svc-miner', minerOptions, 'metrics-bind', 28_793],
  ['svc-wallet daemon', daemonOptions, 'listen', 28_703],
  ['svc-wallet', sessionOptions, 'rpc', 28_703],
];

test.each(BINDS)('%s takes every form of an address: %#', (_, options, option, port) => {
  for (const [word, host, given] of TAKEN)
    expect(read(options, option, word), `--${option} ${word}`).toEqual({ host, port: given === PORT ? port : given });
  for (const word of REFUSED) expect(() => read(options, option, word), `--${option} ${word}`).toThrow();
});

test.each<[string, OptionTable, string, number | undefined]>([
  ['svcd, its API', runOptions, 'apiBind', 28_701],
  ['svcd, its mining listener', runOptions, 'miningBind', 28_702],
  ['svcd, its metrics: off', runOptions, 'metricsBind', undefined],
  ['svc-bridge, its metrics', bridgeOptions, 'metricsBind', 28_792],
  ['svc-bridge, its statistics', bridgeOptions, 'statsBind', 28_771],
  ['svc-miner, its metrics', minerOptions, 'metricsBind', 28_793],
  ['svc-miner, its statistics', minerOptions, 'apiBind', 28_770],
])('without options %s listens on this machine at the port of the specification', (_, options, property, port) => {
  const user = formatAddress(new Uint8Array(49).fill(7, 1), 'development');
  const needed = options === minerOptions ? ['-o', 'stratum+tcp://127.0.0.1:1', '-u', user] : [];
  const parsed = parseCommandLine({ name: 'x', summary: '', options }, needed, () => '');
  if (parsed.kind !== 'run') throw parsed.kind === 'usage' ? parsed.error : new Error(parsed.kind);
  const bind = (parsed.values as Record<string, unknown>)[property];
  expect(bind).toEqual(port === undefined ? undefined : { host: '127.0.0.1', port });
});

test('no option of a program listens by another reader', () => {
  const tables = { svcd: runOptions, 'svc-bridge': bridgeOptions, 'svc-pool': poolOptions, 'svc-miner': minerOptions };
  for (const [program, table] of Object.entries(tables))
    for (const [property, { placeholder }] of Object.entries(table as OptionTable)) {
      const option = property.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      if (!/^HOST(\[?:PORT\]?)/.test(placeholder) || /overlay|p2p|neighbour/.test(option)) continue;
      expect(BINDS.map(([name, , known]) => `${name} ${known}`)).toContain(`${program} ${option}`);
    }
});

test('what serves HTTP is called -bind in every program; earlier names still work, in a file too', () => {
  const http = BINDS.map(([, , option]) => option).filter((option) => /api|mining|metrics|stats|web/.test(option));
  expect(http.filter((option) => !option.endsWith('-bind'))).toEqual([]);
  const former: [OptionTable, string, string][] = [
    [minerOptions, 'api-listen', 'apiBind'],
    [minerOptions, 'metrics-listen', 'metricsBind'],
    [poolOptions, 'web-listen', 'webBind'],
  ];
  for (const [options, name, property] of former) {
    const command = { name: 'svc', summary: '', options };
    const address = { host: '127.0.0.1', port: 9 };
    const file = JSON.stringify({ [name]: '127.0.0.1:9' });
    for (const words of [
      [`--${name}`, '127.0.0.1:9'],
      ['--config', 'file'],
    ])
      expect(parseCommandLine(command, words, () => file)).toMatchObject({ values: { [property]: address } });
    const both = JSON.stringify({ [name]: '127.0.0.1:9', [optionName(property)]: '127.0.0.1:8' });
    expect(parseCommandLine(command, ['--config', 'file'], () => both)).toMatchObject({
      error: { code: 'config_syntax' },
    });
    expect(parseCommandLine(command, [`--${name}=:9`, `--${optionName(property)}=:8`], () => file)).toMatchObject({
      error: { code: 'usage_repeated' },
    });
  }
});

test('overlay and peers take addresses, names and multiaddrs of both families', () => {
  for (const [word, address] of [
    ['/ip4/10.0.0.1/tcp/7', { host: '10.0.0.1', port: 7, way: 'tcp' }],
    ['/ip6/::1/tcp/7', { host: '::1', port: 7, way: 'tcp' }],
    ['/dns/node.example/tcp/7', { host: 'node.example', port: 7, way: 'tcp' }],
    ['/dns4/node.example/tcp/7', { host: 'node.example', port: 7, family: 4, way: 'tcp' }],
    ['/dns6/node.example/tcp/7', { host: 'node.example', port: 7, family: 6, way: 'tcp' }],
    ['/ip4/10.0.0.1/udp/7/quic-v1', { host: '10.0.0.1', port: 7, way: 'quic' }],
    ['/ip6/::1/udp/7/quic-v1', { host: '::1', port: 7, way: 'quic' }],
    ['/dns/node.example/udp/7/quic-v1', { host: 'node.example', port: 7, way: 'quic' }],
    ['/dns4/node.example/udp/7/quic-v1', { host: 'node.example', port: 7, family: 4, way: 'quic' }],
    ['/dns6/node.example/udp/7/quic-v1', { host: 'node.example', port: 7, family: 6, way: 'quic' }],
    ['node.example', { host: 'node.example', port: undefined }],
    ['[::1]', { host: '::1', port: undefined }],
  ] as const) {
    expect(read(runOptions, 'overlay-listen', word)).toEqual([address]);
    expect(read(runOptions, 'p2p-listen', word)).toEqual([address]);
  }
  const plan = { p2p: 'on', p2pAnnounce: [], bootstrap: [], maxPeers: 50, network: 'mainnet' } as const;
  const p2pListen = ['/dns4/a.example/tcp/7', 'b.example', '::1', '10.0.0.1:8', '/dns6/c.example/udp/9/quic-v1'].map(
    readNetworkAddress,
  );
  expect(networkPlan({ ...plan, p2pListen })?.listen).toEqual([
    '/dns4/a.example/tcp/7',
    '/dns/b.example/tcp/28705',
    '/ip6/::1/tcp/28705',
    '/ip4/10.0.0.1/tcp/8',
    '/dns6/c.example/udp/9/quic-v1',
  ]);
});

test.each([
  '/ip4/10.0.0.1/udp/28704',
  '/ip4/10.0.0.1/udp/28704/quic',
  '/ip4/10.0.0.1/tcp/28704/quic-v1',
  '/ip4/10.0.0.1/udp/65536/quic-v1',
  '/ip4/10.0.0.1/udp/7/quic-v1/webtransport',
  '/ip6/10.0.0.1/udp/7/quic-v1',
  '/dns4/10.0.0.1/udp/7/quic-v1',
])('%s is no address, and the message shows one of TCP and one of QUIC', (word) =>
  expect(() => readNetworkAddress(word)).toThrow(/must be .*\/tcp\/28704 or .*\/udp\/28704\/quic-v1/),
);

test('the metrics listener opens at ::1', async () => {
  const address = read(runOptions, 'metrics-bind', '[::1]:0') as { host: string; port: number };
  const listener = await listenForMetrics(address, { metrics: new Metrics('svc_node'), log: silentLog });
  onTestFinished(() => listener.close());
  expect((await fetch(`http://[::1]:${listener.address.port}/metrics`)).status).toBe(200);
});

const reaches = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port }, () => resolve(true));
    socket.on('error', () => resolve(false));
    onTestFinished(() => void socket.destroy());
  });

async function openOverlay(bind: BindAddress) {
  const listeners = new OverlayListeners(silentLog, (socket) => socket.destroy());
  onTestFinished(() => listeners.close());
  return (await listeners.open(bind))[0] as OverlayAddress;
}

const hasIPv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ family }) => family === 'IPv6'));

test('a validator that names no address listens on every interface, of IPv4 and of IPv6', async () => {
  const parsed = parseCommandLine(
    { name: 'svcd run', summary: '', options: runOptions },
    ['--consensus-key-file', 'x', '--consensus-password-file', 'y'],
    () => '',
  );
  if (parsed.kind !== 'run') throw new Error(parsed.kind);
  const [bind, ...more] = validatorPlan(parsed.values)?.binds ?? [];
  expect([bind?.port, more]).toEqual([28_704, []]);
  const { port } = await openOverlay({ ...(bind as BindAddress), port: 0 });
  expect(await reaches('127.0.0.1', port)).toBe(true);
  expect(await reaches('::1', port)).toBe(hasIPv6);
});

test('dns4 listens on the IPv4 address of a name', async () => {
  const { host, port } = await openOverlay({ host: 'localhost', port: 0, family: 4 });
  expect(isIP(host)).toBe(4);
  expect(await reaches('127.0.0.1', port)).toBe(true);
});

test('the wallet daemon listens on every interface with --allow-remote alone, on this machine without it', () => {
  const listen = (...words: string[]) => {
    const parsed = parseCommandLine({ name: 'x', summary: '', options: daemonOptions }, words, () => '');
    if (parsed.kind !== 'run') throw new Error(parsed.kind);
    return daemonListen(parsed.values);
  };
  expect(listen()).toEqual({ host: '127.0.0.1', port: 28_703 });
  expect(listen('--allow-remote')).toEqual({ host: '::', port: 28_703 });
  expect(listen('--allow-remote', '--listen', '10.0.0.1:7')).toEqual({ host: '10.0.0.1', port: 7 });
});
