/** The pool's live pages: one client cannot take them all, neither directly nor behind the operator's proxy. */
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { LIVE_DEFAULTS, LiveHub } from '../../pool/api/public/live.ts';
import { WEB_LIMITS } from '../../pool/api/web.ts';
import { webBed } from '../pool/web-bed.ts';
import { quietLog } from '../quiet-log.ts';

test('pages are counted by client; who has too many is refused, others are not', async () => {
  expect(LIVE_DEFAULTS.maxPagesPerClient).toBeLessThan(WEB_LIMITS.connections / 10);
  const live = new LiveHub({ maxPagesPerClient: 3 }, { first: () => undefined, log: quietLog });
  const port = await webBed(['127.0.0.1'], {
    live: (request, socket, head, client) => live.upgrade(request, socket, head, client),
  });
  onTestFinished(() => live.close());
  const open = (client: string): Promise<[number | undefined, WebSocket]> =>
    new Promise((resolve) => {
      const headers = { 'x-forwarded-for': client };
      const page = new WebSocket(`ws://127.0.0.1:${port}/api/v1/live`, { headers });
      page.on('error', () => undefined);
      page.on('open', () => resolve([101, page]));
      page.on('unexpected-response', (_request, answer) => resolve([answer.statusCode, page]));
    });
  const status = async (client: string) => (await open(client))[0];
  const [, first] = await open('192.0.2.1');
  expect([await status('192.0.2.1'), await status('192.0.2.1'), await status('192.0.2.1')]).toEqual([101, 101, 503]);
  // One /64 is one client.
  expect(await Promise.all([1, 2, 3].map((i) => status(`2001:db8::${i}`)))).toEqual([101, 101, 101]);
  expect(await status('192.0.2.9')).toBe(101);
  first.terminate();
  await expect.poll(() => live.pages).toBe(6);
  expect(await status('192.0.2.1')).toBe(101);
});
