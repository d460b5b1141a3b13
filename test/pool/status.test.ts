/** The public status page: what it says about each outage, and that it needs nothing but the process that serves it. */
import { expect, test } from 'vitest';
import { LATE_CUTS, LATE_MILLIS, type StatusFacts, statusOf, statusPage } from '../../pool/api/public/status.ts';
import type { Language } from '../../protocol/languages.ts';
import { webBed } from './web-bed.ts';

const NOW = 1_000_000;
const instance = {
  instance: 'ab',
  name: 'secret-host.internal',
  version: '1',
  startedMillis: 0,
  atMillis: NOW,
  accountant: true,
  ready: true,
  height: 500,
  connections: { pplns: 2, solo: 3 },
  accepted: 0,
  rejected: 0,
  waiting: 0,
};
const chain = {
  atMillis: NOW,
  newestMillis: NOW,
  height: 500,
  targetWork: 1n,
  hashesPerSecond: 1n,
  rateMillis: 1,
  synced: true,
};
const well: StatusFacts = {
  nowMillis: NOW,
  instances: [instance],
  chain,
  databaseMillis: NOW,
  booksHeight: 499,
  payouts: { minimum: '1', interval_seconds: 60, paused: false, pause_note: null },
};
const states = (facts: Partial<StatusFacts>) => {
  const { state, parts } = statusOf({ ...well, ...facts });
  return [state, ...parts.filter((part) => part.state !== 'working').map((part) => `${part.name} ${part.state}`)];
};

test('each outage is named, and a pool that serves miners is limited, not away', () => {
  const old = NOW - LATE_MILLIS - 1;
  expect(states({})).toEqual(['working']);
  expect(states({ databaseMillis: old })).toEqual(['limited', 'database away', 'books away', 'payouts away']);
  expect(states({ databaseMillis: NOW - LATE_MILLIS })).toEqual(['working']);
  expect(states({ chain: { ...chain, atMillis: old } })).toEqual(['limited', 'node away']);
  expect(states({ chain: { ...chain, synced: false } })).toEqual(['limited', 'node limited']);
  expect(states({ booksHeight: 500 - LATE_CUTS - 1 })).toEqual(['limited', 'books limited']);
  expect(states({ instances: [{ ...instance, accountant: false }] })).toEqual(['limited', 'books limited']);
  expect(states({ payouts: { ...well.payouts, paused: true } as StatusFacts['payouts'] })).toEqual([
    'limited',
    'payouts limited',
  ]);
  expect(states({ instances: [{ ...instance, ready: false }] })).toEqual(['away', 'mining away']);
  expect(states({ instances: [instance, { ...instance, atMillis: old }] })).toEqual(['limited', 'mining limited']);
});

test('one is counted as one, the time has no fractions, and books without a delay say so', () => {
  const page = statusPage(statusOf({ ...well, instances: [{ ...instance, connections: { pplns: 1 } }] }), 'a pool');
  expect(page).toContain('<td>1 connection</td>');
  expect(page).toContain('<td>1 cut behind the node</td>');
  expect(page).toContain('<caption>1970-01-01 00:16:40 UTC</caption>');
  expect(statusPage(statusOf({ ...well, booksHeight: 501 }), 'a pool')).toContain('<td>level with the node</td>');
});

test('the page shows text of the operator as text, and no name of a machine', () => {
  const payouts = { minimum: '1', interval_seconds: 60, paused: true, pause_note: '<script>x</script>' };
  const page = statusPage(statusOf({ ...well, payouts }), 'a <b> pool');
  expect(page).not.toMatch(/<script|<b>|secret-host/);
  expect(page).toContain('&#60;script&#62;x');
  expect(page).toContain('5 connections');
  // A page that reloads by itself is a fault for people who read slowly (WCAG 2.2.1), and axe-core calls it critical.
  expect(page).not.toContain('http-equiv');
});

test.each(['', '/pool'])('the page is served below "%s", fresh each time, to whoever asks', async (prefix) => {
  let paused = false;
  const status = async (language?: Language) =>
    statusOf(
      { ...well, databaseMillis: undefined, payouts: { ...(well.payouts as object), paused } as never },
      language,
    );
  let name: string | undefined;
  const figures = () => (name === undefined ? undefined : { name });
  const port = await webBed([], { live: () => undefined, status, first: figures }, { prefix });
  const get = (query = '', wanted = 'fr') =>
    fetch(`http://127.0.0.1:${port}${prefix}/status${query}`, { headers: { 'accept-language': wanted } });
  const first = await get();
  expect(first.status).toBe(200);
  expect(first.headers.get('content-type')).toMatch(/^text\/html/);
  expect(first.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await first.text()).toContain('the database has not answered yet');
  // In the language that the browser asks for, or the one that the page's link names.
  expect(await (await get('', 'fr-FR, de-CH;q=0.9, en;q=0.8')).text()).toMatch(
    /<html lang="de">[\s\S]*die Datenbank hat noch nicht geantwortet[\s\S]*5 Verbindungen/,
  );
  expect(await (await get('?language=es', 'de')).text()).toContain('la base de datos aún no ha respondido');
  expect(await (await get('?language=x&language=y', 'zh')).text()).toContain('5 个连接');
  paused = true;
  name = 'A new name';
  const later = await (await get()).text();
  expect(later).toContain('paused by the operator');
  expect(later).toContain('<h1>A new name: ');
});
