/** Metrics and statistics have no rate limit: clients may ask as often as the connection allows. They are gathered once for all that ask meanwhile. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { listenForStats } from '../../bridge/stats.ts';
import { sharedInFlight } from '../../runtime/clients/in-flight.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../../runtime/metrics/metrics-listener.ts';
import { quietLog } from '../quiet-log.ts';
import { dial } from './raw-client.ts';

const BIND = { host: '127.0.0.1', port: 0 };
const EACH = 8;
const CONNECTIONS = 20;

/** Sends as many as a connection takes, on several at once; resolves when all are answered. */
async function flood(port: number, path: string): Promise<void> {
  const request = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`.repeat(EACH);
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => dial(port, request)));
  onTestFinished(() => {
    for (const { socket } of clients) socket.destroy();
  });
  for (const client of clients) await expect.poll(() => client.text.split('HTTP/1.1 200').length - 1).toBe(EACH);
}

test('metrics', async () => {
  const metrics = new Metrics('svc_node');
  let gathered = 0;
  const { text } = metrics;
  metrics.text = async () => {
    gathered++;
    await turn();
    return text.call(metrics);
  };
  const listener = await listenForMetrics(BIND, { metrics, log: quietLog });
  onTestFinished(() => listener.close());
  await flood(listener.address.port, '/metrics');
  expect(gathered).toBeLessThanOrEqual(2 * CONNECTIONS);
});

test('statistics, also when they cannot be had', async () => {
  let gathered = 0;
  const stats = async () => {
    gathered++;
    await turn();
    if (gathered === 1) throw new Error('the first time');
    return { shares: gathered };
  };
  const listener = await listenForStats(BIND, { stats, log: quietLog });
  onTestFinished(() => listener.close());
  const failed = await fetch(`http://127.0.0.1:${listener.address.port}/v1/stats`);
  expect(failed.status).toBe(503);
  await flood(listener.address.port, '/v1/stats');
  expect(gathered).toBeLessThanOrEqual(2 * CONNECTIONS);
});

test('a small listener serves the paths of its table alone, by their methods alone', async () => {
  const listener = await listenForStats(BIND, { stats: async () => ({ shares: 1 }), log: quietLog });
  onTestFinished(() => listener.close());
  const ask = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${listener.address.port}${path}`, { method });
  for (const path of ['/', '/constructor', '/__proto__', '/v1/stats/', '/toString'])
    expect((await ask(path)).status, path).toBe(404);
  const refused = await ask('/v1/stats', 'POST');
  expect([refused.status, refused.headers.get('allow'), await refused.text()]).toEqual([
    405,
    'GET, HEAD',
    '{"error":"use GET"}\n',
  ]);
  const head = await ask('/v1/stats', 'HEAD');
  expect([head.status, await head.text()]).toEqual([200, '']);
});

test('what takes long to make is made for a fifth of the time, however often it is asked for', async () => {
  let clock = 0;
  let made = 0;
  const ask = sharedInFlight(
    async () => {
      clock += 100;
      return ++made;
    },
    () => clock,
  );
  for (; clock < 10_000; clock += 10) await ask();
  expect(made).toBeLessThanOrEqual(21);
  const failing = sharedInFlight(
    async () => Promise.reject(new Error('not now')),
    () => clock,
  );
  await expect(failing()).rejects.toThrow('not now');
  await expect(failing()).rejects.toThrow('not now');
});
