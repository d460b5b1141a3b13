/** What a person at a terminal sees: banner, bottom line, summary. */
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { type Snapshot, statusLines, threadLines } from '../../miner/stats.ts';
import { showDuration } from '../../miner/terminal/duration.ts';
import { type KeyInput, listenForKeys } from '../../miner/terminal/keys.ts';
import {
  BottomLine,
  bannerLines,
  connectionLines,
  liveLine,
  paintFor,
  shareLines,
  shortLine,
  showWork,
  summaryLines,
} from '../../miner/terminal/terminal-view.ts';

const device = {
  number: 0,
  name: 'CPU, 2 threads',
  kind: 'wasm',
  state: 'searching',
  reason: undefined,
  rates: { short: 1_234_000, medium: 1_200_000, long: undefined },
  threads: [],
  hashes: 600_000_000,
  shares: { accepted: 41, stale: 1, rejected: 0, lost: 0, bad: 0 },
  sensor: undefined,
} as const;

const snapshot: Snapshot = {
  version: '1.0.0',
  uptimeSeconds: 500,
  network: 'development',
  address: 'dsvc1x',
  worker: 'rig',
  paused: false,
  pool: undefined,
  pools: ['stratum+tcp://pool.example:28720'],
  connections: 1,
  nextTrySeconds: undefined,
  lastRefusal: undefined,
  poolRate: 1_190_000,
  acceptedWork: 595_000_000n,
  shareWork: 12_100_000n,
  fastest: 1_300_000,
  blocks: 2,
  books: { compared: 3, newest: 7, alarms: 0, unwritten: 0, proven: 2, unchecked: 0 },
  devices: [device],
};

const plain = paintFor(false, {});

test('the key h shows the highest rate too', () => {
  expect(statusLines(snapshot).at(-1)).toMatch(/^total: .* {2}max 1\.30 MH\/s {2}at the pool/);
});

test('the key h shows every thread of a processor, eight to a line', () => {
  const threads = [...Array.from({ length: 8 }, (_, i) => 1_000 * (i + 1)), undefined];
  expect(threadLines({ ...snapshot, devices: [{ ...device, threads }, device] })).toEqual([
    'device 0 threads 0-7 (10 s): 1.00 kH/s  2.00 kH/s  3.00 kH/s  4.00 kH/s  5.00 kH/s  6.00 kH/s  7.00 kH/s  8.00 kH/s',
    'device 0 threads 8-8 (10 s): -',
  ]);
});

test('a line of the log in a terminal has the time of day, a tag and short ids; a warning is coloured, and NO_COLOR is obeyed', () => {
  const atMillis = new Date(2026, 0, 2, 3, 4, 5).getTime();
  const line = (paint: typeof plain, level: 'info' | 'warn', message: string, fields: object) =>
    shortLine(paint)({ atMillis, level, message, fields: fields as Record<string, unknown> });
  expect(line(plain, 'info', 'block found', { id: new Uint8Array(48).fill(0xab) })).toBe(
    '03:04:05 block  block found id=abababab…abab',
  );
  expect(line(plain, 'info', 'connected', { pool: 'stratum+tcp://pool.example:28720' })).toBe(
    '03:04:05 pool   connected pool=stratum+tcp://pool.example:28720',
  );
  // Text of a server can neither begin a line nor colour one.
  expect(line(plain, 'warn', 'share rejected', { reason: 'a\n\u001b[31mb' })).not.toMatch(/\p{Cc}/u);
  expect(line(plain, 'info', 'saved', { path: `/tmp/evidence-${'ab'.repeat(20)}.json` })).toContain('ab'.repeat(20));
  expect(line(paintFor(true, {}), 'warn', 'no work', {})).toContain('\u001b[33mno work');
  expect(line(paintFor(true, { NO_COLOR: '1' }), 'warn', 'no work', {})).toBe('03:04:05 miner  no work');
});

test('a device whose driver tells it has temperature, power and hashes per joule', () => {
  const sensor = { name: 'card', celsius: 61, watts: 150.4 };
  expect(statusLines({ ...snapshot, devices: [{ ...device, sensor }] })[0]).toMatch(/ 61 °C {2}150 W {2}7\.98 kH\/J$/);
  const cold = { ...sensor, watts: undefined };
  expect(statusLines({ ...snapshot, devices: [{ ...device, sensor: cold }] })[0]).toMatch(/ 61 °C$/);
});

test('the key s shows the shares, and c the connection or when it is tried again', () => {
  expect(shareLines(snapshot)).toEqual([
    '41 accepted, 1 stale; 2 blocks found',
    'work 595M, 0.992 of each hash; a share now: 12.1M',
  ]);
  expect(shareLines({ ...snapshot, devices: [device, device] })[1]).toBe('0 CPU, 2 threads: 41 accepted, 1 stale');
  const pool = {
    endpoint: 'stratum+tcp://pool.example:28720',
    pool: 0,
    server: 'svc-pool/1',
    poolName: 'A pool\n',
    latencyMillis: 20.6,
    connectedAt: 0,
    connectedSeconds: 65,
  };
  expect(connectionLines({ ...snapshot, pool })).toEqual([
    'connected to stratum+tcp://pool.example:28720 for 1 min 05 s, 21 ms',
    'server: "A pool\\n", svc-pool/1',
    'connections opened: 1; pools: stratum+tcp://pool.example:28720',
  ]);
  const lastRefusal = { code: 'pool_closed', message: 'the pool closed the connection' } as const;
  expect(connectionLines({ ...snapshot, nextTrySeconds: 7.2, lastRefusal })).toEqual([
    'disconnected, next try in 8 s',
    'last error: "the pool closed the connection" [pool_closed]',
    'connections opened: 1; pools: stratum+tcp://pool.example:28720',
  ]);
});

test('keys do what the banner says; an arrow is no key, and a question mark shows them', () => {
  const done: string[] = [];
  const input = Object.assign(new EventEmitter(), {
    isTTY: true as const,
    setRawMode: (isRaw: boolean) => void done.push(`raw ${isRaw}`),
    resume: () => undefined,
    pause: () => undefined,
  });
  const act = (name: string) => () => void done.push(name);
  const actions = { h: act('h'), p: act('p'), r: act('r'), s: act('s'), c: act('c'), q: act('q'), help: act('help') };
  const stop = listenForKeys(input as unknown as KeyInput, actions);
  for (const text of ['hp', 's', 'c', 'r', '?', 'x', '\u001b[c', '\u0003']) input.emit('data', text);
  stop();
  input.emit('data', 'h');
  expect(done).toEqual(['raw true', 'h', 'p', 's', 'c', 'r', 'help', 'q', 'raw false']);
});

test('the banner names pool, user, network, devices and keys', () => {
  const facts = {
    version: '1.0.0',
    pools: ['a', 'b'],
    user: 'dsvc1x.rig',
    network: 'development',
    devices: ['0: CPU'],
  };
  expect(bannerLines(facts, plain)).toEqual([
    'svc-miner 1.0.0',
    '  pool    a',
    '  or      b',
    '  user    dsvc1x.rig',
    '  network development',
    '  device  0: CPU',
    '  keys    h hash rate, p pause, r resume, s shares, c connection, q quit',
  ]);
});

test('colours only where a terminal has them and the user wants them', () => {
  const marked = (isTerminal: boolean, env: Record<string, string>) => paintFor(isTerminal, env)('red', 'x') !== 'x';
  expect(marked(true, {})).toBe(true);
  expect(marked(true, { NO_COLOR: '' })).toBe(true);
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) expect(marked(true, env)).toBe(false);
  expect(marked(false, {})).toBe(false);
});

test('the bottom line holds rate, shares, work and time, and never fills the width', () => {
  const whole = liveLine(snapshot, 120, plain);
  expect(whole).toBe('1.23 MH/s  41 accepted, 1 stale  2 blocks  share 12.1M  max 1.30 MH/s  8 min 20 s');
  for (let columns = 0; columns < 120; columns++) {
    const line = liveLine(snapshot, columns, plain);
    expect(line.length).toBeLessThan(Math.max(columns, 1));
    expect(whole.startsWith(line)).toBe(true);
  }
  expect(liveLine({ ...snapshot, paused: true }, 120, plain)).toMatch(/^paused {2}/);
});

test('the bottom line says that no pool is connected and when the next one is tried, with the rate while work goes on', () => {
  const away = { ...snapshot, nextTrySeconds: 7.2 };
  expect(liveLine(away, 120, plain)).toMatch(/^1\.23 MH\/s {2}disconnected, next try in 8 s {2}41 accepted/);
  const resting = { ...away, devices: [{ ...device, state: 'idle' as const }] };
  expect(liveLine(resting, 120, plain)).toMatch(/^disconnected, next try in 8 s {2}41 accepted/);
  expect(liveLine({ ...resting, paused: true }, 120, plain)).toMatch(/^paused {2}41 accepted/);
});

test('the summary says what came of it', () => {
  expect(summaryLines(snapshot)).toEqual([
    'mined for 8 min 20 s: 1.20 MH/s on average, 1.30 MH/s at most',
    'shares: 41 accepted, 1 stale; work 595M; 2 blocks found',
    'books of the pool: 3 slices compared, no difference',
  ]);
  const young = { ...snapshot, uptimeSeconds: 0, blocks: 1, books: undefined, fastest: undefined };
  expect(summaryLines(young)).toEqual([
    'mined for 0 s: - on average, - at most',
    'shares: 41 accepted, 1 stale; work 595M; 1 block found',
  ]);
});

test('other output goes above the bottom line, which is drawn again', () => {
  let out = '';
  const bottom = new BottomLine((text) => {
    out += text;
  });
  const write = () => {
    out += 'log\n';
  };
  bottom.above(write);
  expect(out).toBe('log\n');
  bottom.show('a');
  bottom.show('a');
  bottom.above(write);
  bottom.clear();
  bottom.clear();
  expect(out).toBe('log\n\r\u001b[Ka\r\u001b[Klog\n\r\u001b[Ka\r\u001b[K');
});

test('durations and work read well', () => {
  expect([0, 59.9, 60, 3_599, 3_600, 90_061].map(showDuration)).toEqual([
    '0 s',
    '59 s',
    '1 min 00 s',
    '59 min 59 s',
    '1 h 00 min',
    '25 h 01 min',
  ]);
  expect([0n, 999n, 1_000n, 12_345n, 999_600n, 10n ** 21n].map(showWork)).toEqual([
    '0',
    '999',
    '1.00k',
    '12.3k',
    '1.00M',
    '1.00e+3E',
  ]);
});
