/**
 * What a read costs turns out while it is made. So a client has one such read under way at a time, and owes the whole of what it cost: many at once, each
 * begun before the first was paid for, get it no more of the pool than one after the other. Nobody else waits for them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { PUBLIC_RATE_LIMIT, RateLimiter } from '../../node/api/rate-limit.ts';
import { OperatorToken } from '../../pool/api/operator/operator-token.ts';
import { COSTS, type Route, route } from '../../pool/api/route.ts';
import { startWeb } from '../../pool/api/web.ts';
import { object } from '../../protocol/api/schema.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { temporaryDirectory } from '../temporary.ts';

/** More than comes back while the test lasts, however slow the machine is. */
const DEAR = 1_000_000;
const [ATTACKER, OTHER] = ['127.0.0.2', '127.0.0.3'] as const;

async function openWeb(routes: readonly Route[]): Promise<number> {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'page'));
  writeFileSync(join(directory, 'page', 'index.html'), '<!doctype html>');
  const sink = { write: () => undefined, flush: () => undefined, close: () => undefined };
  const log = createLogger('test', { filter: readLevelFilter('warn'), format: 'text' }, { sink, now: Date.now });
  const token = new OperatorToken(join(directory, 'token'), { log });
  await token.ensure();
  const web = await startWeb(
    {
      listen: { host: '127.0.0.1', port: 0 },
      prefix: '',
      proxies: [],
      dashboard: join(directory, 'page'),
      title: 'test',
      version: '1',
      metrics: false,
      rate: PUBLIC_RATE_LIMIT,
    },
    { routes, token, metrics: new Metrics('svc_pool'), log, now: Date.now, ready: () => true, live: () => undefined },
  );
  onTestFinished(() => web.close());
  return web.address.port;
}

test('many dear reads at once are one after the other, and the first is paid for before the second begins', async () => {
  let [running, most, begun] = [0, 0, 0];
  const cheap = Promise.withResolvers<void>();
  const common = { method: 'GET', group: 'test', summary: 'test', answer: object({}) } as const;
  const port = await openWeb([
    route({
      ...common,
      path: '/dear',
      cost: COSTS.proof,
      isDear: true,
      async handle(_input, { charge, client }) {
        begun++;
        most = Math.max(most, ++running);
        await (client === OTHER ? cheap.promise : sleep(50));
        charge(DEAR);
        running--;
        return {};
      },
    }),
    route({ ...common, path: '/cheap', handle: async () => ({}) }),
  ]);
  const get = (path: string, localAddress: string) =>
    new Promise<number>((resolve, reject) => {
      httpRequest({ host: '127.0.0.1', localAddress, port, path: `/api/v1${path}`, agent: false }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      })
        .on('error', reject)
        .end();
    });
  const attack = Array.from({ length: 50 }, () => get('/dear', ATTACKER));
  const other = await Promise.all([get('/dear', OTHER), get('/cheap', OTHER).finally(cheap.resolve)]);
  const statuses = await Promise.all(attack);
  expect(other).toEqual([200, 200]);
  expect(statuses.filter((status) => status === 200).length).toBe(1);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  // One of each client, at the same time or not.
  expect(begun).toBe(2);
  expect(most).toBeLessThanOrEqual(2);
  // It owes: even the cheapest waits.
  expect(await get('/cheap', ATTACKER)).toBe(429);
});

test('over time nobody gets more than burst, rate and one read that was dearer than it seemed', () => {
  const limits = { perSecond: 10, burst: 30, strikes: 1_000_000, blockMillis: 1, maxClients: 4 };
  const dearest = 400;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 0, max: dearest })), { maxLength: 100 }),
      (steps) => {
        const limiter = new RateLimiter(limits);
        let [now, used] = [0, 0];
        for (const [wait, cost] of steps) {
          now += wait;
          if (!limiter.take('a', 1, now).ok) continue;
          limiter.charge('a', cost, now);
          used += 1 + cost;
          expect(used).toBeLessThanOrEqual(limits.burst + (now * limits.perSecond) / 1000 + dearest + 1e-6);
        }
      },
    ),
  );
});
