import { createHook } from 'node:async_hooks';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { HostLimits, MOST_OF_A_HOST } from '../../pool/webhooks/host-limits.ts';
import { newsOf } from '../../pool/webhooks/news-queue.ts';
import { postWebhook, webhookFault, webhookHost } from '../../pool/webhooks/webhook-target.ts';

const wish = { headers: {}, body: '{}', timeoutMillis: 60_000, signal: new AbortController().signal };

test('a host has one name for its limits, however it is written', () => {
  for (const url of ['https://Example.org/a', 'https://example.org./b', 'https://example.org:8443/'])
    expect(webhookHost(url)).toBe('example.org');
  expect(webhookHost('https://[2606:4700::0001]/')).toBe('2606:4700::1');
});

test('a URL of a stranger is https to the internet, and nothing else without the operator', () => {
  expect(webhookFault('https://example.org/hook?a=1', 'public')).toBeUndefined();
  expect(webhookFault('https://example.org:8443/', 'public')).toBeUndefined();
  expect(webhookFault('https://8.8.8.8/', 'public')).toBeUndefined();
  for (const url of [
    'http://example.org/',
    'ftp://example.org/',
    'file:///etc/passwd',
    'https:',
    '',
    'example.org',
    'https://',
    'https://user@example.org/',
    'https://user:word@example.org/',
    'https://example.org/#a',
    'https://a b/',
    'https://example.org:22/',
    'https://example.org/"',
    `https://example.org/${'a'.repeat(100)}`,
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::1]/',
    'https://10.0.0.1/',
    'https://169.254.169.254/',
    'https://192.168.1.1/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
    'https://0.0.0.0/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
  ])
    expect(webhookFault(url, 'public'), url).toBeTypeOf('string');
  for (const url of ['http://10.0.0.1:8080/hook', 'https://[::1]/', 'http://nas.lan/'])
    expect(webhookFault(url, 'private'), url).toBeUndefined();
  expect(webhookFault('ftp://10.0.0.1/', 'private')).toBeTypeOf('string');
});

test('a name is judged by the addresses that the connection would go to', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const refused = 'the name leads to no address of the internet';
  expect(await postWebhook(`https://localhost:${port}/`, 'public', wish)).toBe(refused);
  // First an address of the internet, then one of the inside: a name that answers with both is refused whole.
  const both = {
    addresses: async () => ['192.0.66.1', '127.0.0.1'].map((address) => ({ address, family: 4 })),
    end: () => undefined,
  };
  expect(await postWebhook(`https://example.org:${port}/`, 'public', wish, both)).toBe(refused);
  expect(connections).toBe(0);
  // The same door, where the operator admits it.
  expect(await postWebhook(`http://localhost:${port}/`, 'private', wish)).toBeTypeOf('string');
  expect(connections).toBeGreaterThan(0);
});

test('a name of a stranger uses no lookup of the system, which the database would wait behind', async () => {
  const made: string[] = [];
  const hook = createHook({ init: (_id, type) => void made.push(type) }).enable();
  onTestFinished(() => void hook.disable());
  expect(await postWebhook('https://nothing.invalid/', 'public', { ...wish, timeoutMillis: 3_000 })).toBeTypeOf(
    'string',
  );
  expect(made).toContain('QUERYWRAP');
  expect(made).not.toContain('GETADDRINFOREQWRAP');
});

test('of one host few webhooks are sent to at once, and one at a time that has accepted nothing yet', () => {
  const hosts = new HostLimits({ restMillis: 10_000 });
  const first = hosts.begin('a', true, 0);
  expect(first).toBeTypeOf('function');
  expect(hosts.begin('a', true, 0)).toBeUndefined();
  first?.();
  expect(hosts.begin('a', true, 9_999)).toBeUndefined();
  expect(hosts.begin('b', true, 9_999)).toBeTypeOf('function');
  expect(hosts.begin('a', true, 10_000)).toBeTypeOf('function');
  const known = Array.from({ length: MOST_OF_A_HOST }, () => hosts.begin('a', false, 10_000));
  expect(known.filter((end) => end !== undefined)).toHaveLength(MOST_OF_A_HOST - 1);
  known[0]?.();
  expect(hosts.begin('a', false, 10_000)).toBeTypeOf('function');
});

test('a miner gets its own part of an event, and nobody else’s', () => {
  const event = (kind: string, data: object) => ({ id: 5, atMillis: 9, kind, data });
  const recipients = [
    { address: 'a', amount: '1' },
    { address: 'b', amount: '2' },
  ];
  const payout = newsOf(event('payout_final', { payout_id: 'p', transaction_id: 't', recipients }));
  expect(payout.map(({ address, data }) => ({ address, data }))).toEqual([
    { address: 'a', data: { payout_id: 'p', transaction_id: 't', amount: '1' } },
    { address: 'b', data: { payout_id: 'p', transaction_id: 't', amount: '2' } },
  ]);
  expect(newsOf(event('block_found', { block_id: 'x', finder: 'a' }))).toEqual([
    { eventId: 5, address: 'a', kind: 'block_found', atMillis: 9, data: { block_id: 'x' } },
  ]);
  expect(newsOf(event('worker_back', { worker: 'w', address: 'a' }))).toMatchObject([{ address: 'a' }]);
  expect(newsOf(event('payout_needs_person', { payout_id: 'p' }))).toEqual([]);
});

test('a receiver that switches protocols has not accepted anything, and holds nothing up', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  expect(await postWebhook(`http://127.0.0.1:${port}/`, 'private', wish)).toBe('no answer');
});

test('a receiver that sends interim answers without end is left', async () => {
  const piece = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100);
  const server = createServer((socket) => {
    const more = (error?: Error | null): void => void (error != null || socket.destroyed || socket.write(piece, more));
    socket.on('error', () => undefined).once('data', () => more());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  expect(await postWebhook(`http://127.0.0.1:${port}/`, 'private', { ...wish, timeoutMillis: 10_000 })).toMatch(
    /without end/,
  );
});
