/** What a person at a terminal sees: banner, bottom line, summary. */
import { expect, test } from 'vitest';
import { showDuration } from '../../miner/duration.ts';
import { type Snapshot, statusLines, threadLines } from '../../miner/stats.ts';
import { BottomLine, bannerLines, liveLine, paintFor, showWork, summaryLines } from '../../miner/terminal-view.ts';

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
    '  keys    h hash rate, p pause, r resume, q quit',
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
