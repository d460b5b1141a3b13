/** The page of a proxy: what it shows, and that nothing a rig or a pool names becomes a part of it. */
import { expect, onTestFinished, test } from 'vitest';
import { listenForPage, proxyPage } from '../../proxy/page.ts';
import type { ProxyDocument } from '../../proxy/proxy-figures.ts';
import { quietLog } from '../quiet-log.ts';

const HOSTILE = `<img src=x onerror="a('b')">&`;
const rig = {
  address: 'dsvc1own',
  name: 'rig-1',
  agent: HOSTILE,
  connections: 1,
  accepted: 4,
  stale: 1,
  rejected: { above_target: 2 },
  work: '16',
  hash_rate: '2500',
  blocks: 0,
  last_share_millis: 0,
};
const document: ProxyDocument = {
  api_version: 1,
  version: 'test',
  network: 'development',
  address: 'dsvc1own',
  uptime_millis: 61_000,
  ready: true,
  pool: {
    connected: true,
    endpoint: 'stratum2+tcp://pool:1',
    server: HOSTILE,
    name: HOSTILE,
    latency_millis: 3.4,
    form: 'farm',
    share_work: '8',
  },
  kept_addresses: [],
  passed_on: { sent: 3, accepted: 2, stale: 0, lost: 1, rejected: { [HOSTILE]: 1 }, waiting: 0, work: '16', blocks: 0 },
  connections: { all: 2, mining: 1 },
  shares: { accepted: 4, stale: 1, rejected: { above_target: 2 }, work: '16' },
  hash_rate: '2500',
  rigs: [rig],
  rig_count: 1,
  bans: [],
};

test('it shows the pool, the rigs and refusals by reason; the words of others stay text, and of many rigs a bounded part is shown', () => {
  const page = proxyPage(document);
  for (const part of ['connected to a pool', 'a farm session', 'rig-1', '2.50 kH/s', 'above_target 2', '3 ms'])
    expect(page).toContain(part);
  expect(page).not.toContain('<img');
  expect(page).toContain('&#60;img');
  const rigs = Array.from({ length: 1_000 }, () => rig);
  const many = proxyPage({ ...document, rigs, rig_count: 5_000, hash_rate: '12500000' });
  expect(many.split('<tr>').length - 2).toBe(200);
  expect(many).toContain('12.5 MH/s');
  expect(many).toContain('The 200 with the most work, of 5000');
  const away = proxyPage({ ...document, pool: { connected: false, last_refusal: HOSTILE } });
  expect(away).toContain('no pool');
  expect(away).not.toContain('<img');
});

test('with addresses that rigs brought, each of these and its rigs are named', () => {
  const kept = [{ address: 'dsvc1other', connected: true, share_work: '8' }];
  const page = proxyPage({ ...document, kept_addresses: kept });
  expect(page).toContain('<td>dsvc1other</td>');
  expect(page).toContain('<td>dsvc1own.rig-1</td>');
});

test('the listener has the page and its sheet, and says so where the figures cannot be had', async () => {
  let isBroken = false;
  const listener = await listenForPage(
    { host: '127.0.0.1', port: 0 },
    {
      document: async () => {
        if (isBroken) throw new Error('broken');
        return document;
      },
      log: quietLog,
      hosts: [],
    },
  );
  onTestFinished(() => listener.close());
  const get = (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${listener.address.port}${path}`, init);
  const page = await get('/');
  expect(page.status).toBe(200);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await page.text()).toBe(proxyPage(document));
  const sheet = await get('/page.css');
  expect(sheet.headers.get('content-type')).toBe('text/css; charset=utf-8');
  expect(await sheet.text()).toContain('.facts');
  expect((await get('/', { method: 'POST' })).status).toBe(405);
  expect((await get('/v1/stats')).status).toBe(404);
  isBroken = true;
  await expect.poll(async () => (await get('/')).status).toBe(503);
});
