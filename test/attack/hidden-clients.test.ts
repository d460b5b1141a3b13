/**
 * A proxy that does not say who its clients are, or that the operator forgot to list, before the doors that web miners come
 * through: nobody gets in as "this machine", where nothing is ever banned; the log names the proxy and the remedy.
 */
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { startBed } from '../bridge/bed.ts';
import { webBed } from '../pool/web-bed.ts';

/** What an upgrade is answered with; 101 when it is a WebSocket now. */
const upgrade = (url: string, headers: Record<string, string>): Promise<number> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url, ['svc-mining-v1'], { headers });
    onTestFinished(() => socket.terminate());
    socket.on('error', () => resolve(0));
    socket.on('open', () => resolve(101));
    socket.on('unexpected-response', (_request, answer) => resolve(answer.statusCode ?? 0));
  });

const NAMED = { 'x-forwarded-for': '203.0.113.5' };

async function web(proxies: readonly string[]) {
  const lines: string[] = [];
  const log = createLogger(
    'test',
    { filter: readLevelFilter('warn'), format: 'text' },
    { sink: { write: (line) => void lines.push(line), flush: () => {}, close: () => {} }, now: Date.now },
  );
  const clients: string[] = [];
  const port = await webBed(proxies, {
    log,
    live: (_request, socket) => socket.destroy(),
    stratum: (_service, _request, socket, _head, client) => {
      clients.push(client);
      socket.destroy();
    },
  });
  return { url: `ws://127.0.0.1:${port}/stratum/pplns`, clients, lines };
}

test("the pool's page: a listed proxy names its clients or is refused; one that is not listed is refused and named", async () => {
  const listed = await web(['127.0.0.1']);
  await upgrade(listed.url, NAMED);
  expect(listed.clients).toEqual(['203.0.113.5']);
  expect(await upgrade(listed.url, {})).toBe(400);
  expect(await upgrade(listed.url, { 'x-forwarded-for': 'nonsense' })).toBe(400);
  expect(listed.clients).toHaveLength(1);
  expect(listed.lines.join('')).toMatch(/count as one.*does not name its clients.*--trusted-proxy/);

  const forgotten = await web([]);
  expect(await upgrade(forgotten.url, NAMED)).toBe(400);
  expect(forgotten.clients).toEqual([]);
  expect(forgotten.lines.join('')).toMatch(/count as one.*not listed.*--trusted-proxy/);
  // Without a proxy the client is the peer itself.
  await upgrade(forgotten.url, {});
  expect(forgotten.clients).toEqual(['127.0.0.1']);
});

test('the stratum WebSocket: the same, by the list of --proxy-protocol', async () => {
  const listed = await startBed({ proxies: ['127.0.0.1/32'] });
  expect(await upgrade(`ws://127.0.0.1:${listed.wsPort}`, NAMED)).toBe(101);
  expect(await upgrade(`ws://127.0.0.1:${listed.wsPort}`, {})).toBe(400);
  const forgotten = await startBed();
  expect(await upgrade(`ws://127.0.0.1:${forgotten.wsPort}`, NAMED)).toBe(400);
  expect(await upgrade(`ws://127.0.0.1:${forgotten.wsPort}`, {})).toBe(101);
});
