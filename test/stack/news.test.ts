/** What `npm start` tells: the first of each kind, once, miners that leave, and where things are. */
import { expect, test } from 'vitest';
import { minerCommand } from '../../miner/options.ts';
import { formatAddress } from '../../protocol/address.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { figuresOf } from '../../stack/figures.ts';
import { NOTHING, newsOf, summary } from '../../stack/news.ts';
import {
  bridgePart,
  files,
  minerPart,
  nodePart,
  PORTS,
  type Ports,
  poolPart,
  proxyPart,
  START_PACE,
  walletPart,
} from '../../stack/parts.ts';

const ports = Object.fromEntries(Object.entries(PORTS).map(([name, { port }]) => [name, port])) as Ports;

test('each first is reported once, and nothing else', () => {
  const shares = { ...NOTHING, miners: 1, shares: 5n };
  const found = { ...shares, shares: 9n, blocksFound: 2 };
  const paid = { ...found, blocksPaid: 1, payoutsFinal: 1 };
  const booked = { ...paid, paidAtoms: 742_50000000n };
  expect(newsOf(undefined, paid)).toEqual([`goes on from an earlier start: ${summary(paid)}`]);
  expect(newsOf(NOTHING, NOTHING)).toEqual([]);
  expect(newsOf(NOTHING, shares)).toEqual(['first share accepted']);
  expect(newsOf(shares, found)).toEqual(['first block found']);
  expect(newsOf(found, paid)).toEqual(['first reward paid by the chain']);
  expect(newsOf(paid, booked)).toEqual(['first payout final, 742.50000000 coins']);
  expect(newsOf(booked, { ...booked, shares: 90n, payoutsFinal: 4, paidAtoms: 1n })).toEqual([]);
  expect(newsOf(booked, { ...booked, miners: 0 })).toEqual(['0 miners connected, 1 before']);
  expect(newsOf({ ...booked, miners: 2 }, booked)).toEqual(['1 miner connected, 2 before']);
  expect(summary(booked)).toBe('0 H/s, 1 miner, 9 shares, 2 blocks found, 1 paid, 1 payouts, 742.50000000 coins');
});

test('figures are read from the metrics by whole name and label', () => {
  const figures = figuresOf(
    [
      'svc_pool_connections{service="pplns"} 3',
      'svc_pool_connections{service="solo"} 1',
      'svc_pool_connections_total 99',
      'svc_pool_shares_total{result="accepted"} 12',
      'svc_pool_shares_total{result="stale"} 7',
      'svc_pool_hash_rate 1.5e+3',
    ].join('\n'),
  );
  expect(figures).toMatchObject({ miners: 4, shares: 12n, hashRate: 1500 });
});

test('with a proxy its page is served, and the line about it names the address', () => {
  const { where, words } = proxyPart('/data', ports, 'ADDRESS');
  expect(where).toContain(`page http://127.0.0.1:${PORTS.proxyWeb.port}/`);
  expect(words[words.indexOf('--web-bind') + 1]).toBe(`127.0.0.1:${PORTS.proxyWeb.port}`);
});

test('each program keeps its files in the data directory of the start, where a reset deletes them', () => {
  const parts = [
    nodePart('/data', ports, START_PACE),
    walletPart('/data', ports),
    poolPart('/data', ports, START_PACE),
    bridgePart('/data', ports),
    proxyPart('/data', ports, 'ADDRESS'),
    minerPart('/data', ports, 'ADDRESS', false),
  ];
  for (const { name, words } of parts) {
    const place = words.findIndex((word) => word === '--data-dir' || word === '--file');
    expect(Object.values(files('/data')), name).toContain(words[place + 1]);
  }
});

test.each([undefined, 5, 20, 100])('the miner of a start with --throttle %s takes it, and says so', (throttle) => {
  const address = formatAddress(new Uint8Array(49), 'development');
  for (const gpu of [false, true]) {
    const { words, where } = minerPart('/data', ports, address, gpu, { throttle });
    const parsed = parseCommandLine(minerCommand, words, () => '');
    expect(parsed).toMatchObject({ kind: 'run', values: { throttle: throttle ?? 100, gpu } });
    expect(where.includes(`at ${throttle} %`)).toBe(throttle !== undefined);
  }
});
