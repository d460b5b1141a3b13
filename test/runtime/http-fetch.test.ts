/** The fetch over node:http: kept connections, and every way in which an answer can be lost is a rejection. */
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createConnections } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { httpFetch } from '../../runtime/node-client/http-fetch.ts';

async function serve(listener: RequestListener): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  const server = createServer(listener);
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, connections: () => connections };
}

const get = { method: 'GET', headers: { accept: 'application/json' }, signal: AbortSignal.timeout(600_000) };
const text = async (answer: { arrayBuffer(): Promise<ArrayBuffer> }) =>
  Buffer.from(await answer.arrayBuffer()).toString();

test('status, headers and body, over connections that are used again', async () => {
  const { url, connections } = await serve((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      response.writeHead(request.method === 'POST' ? 429 : 200, { 'x-seen': `${request.headers.accept}` });
      response.write(`${request.method} `);
      response.end(Buffer.concat(parts));
    });
  });
  const fetch = httpFetch();
  for (let i = 0; i < 5; i++) {
    const answer = await fetch(url, get);
    expect([answer.status, answer.headers.get('X-Seen'), answer.headers.get('x-none')]).toEqual([
      200,
      'application/json',
      null,
    ]);
    expect(await text(answer)).toBe('GET ');
  }
  const posted = await fetch(url, { ...get, method: 'POST', body: new Uint8Array([0x68, 0x69]) });
  expect([posted.status, await text(posted)]).toEqual([429, 'POST hi']);
  expect(connections()).toBeLessThan(6);
});

test('an answer that ends in the middle is lost, not short', async () => {
  const { url } = await serve((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half', () => response.destroy());
  });
  await expect(httpFetch()(url, get).then(text)).rejects.toThrow();
});

test('no answer in time, at the start or in the middle, is a rejection', async () => {
  const silent = await serve(() => undefined);
  const halting = await serve((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half');
  });
  for (const { url } of [silent, halting])
    await expect(httpFetch()(url, { ...get, signal: AbortSignal.timeout(300) }).then(text)).rejects.toThrow();
});

test('nobody listening is a rejection', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  await expect(httpFetch()(`http://127.0.0.1:${port}/`, get)).rejects.toThrow();
});

test('an answer larger than the limit is given up, with or without a stated length, and the connection with it', async () => {
  let written = 0;
  const stated = await serve((_, response) => {
    response.writeHead(200, { 'content-length': String(1 << 30) });
    response.write('a');
  });
  const endless = await serve((_, response) => {
    response.writeHead(200);
    const more = (): void => {
      if (response.destroyed) return;
      written += 65_536;
      response.write(Buffer.alloc(65_536), more);
    };
    more();
  });
  const fetch = httpFetch({ maxBytes: 1 << 20 });
  for (const { url } of [stated, endless])
    await expect(fetch(url, get).then(text)).rejects.toThrow('larger than 1048576 bytes');
  expect(written).toBeLessThan(64 << 20);
  const exact = await serve((_, response) => response.end(Buffer.alloc(1 << 20)));
  expect((await fetch(exact.url, get).then(text)).length).toBe(1 << 20);
});

test('a redirect is an answer like any other: nobody is asked in its place', async () => {
  let asked = 0;
  const elsewhere = await serve((_, response) => {
    asked++;
    response.end('elsewhere');
  });
  const { url } = await serve((_, response) => response.writeHead(302, { location: elsewhere.url }).end());
  expect((await httpFetch()(url, get)).status).toBe(302);
  expect(asked).toBe(0);
});

test('an answer that switches protocols is a rejection too', async () => {
  const server = createConnections((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write('HTTP/1.1 101 Ok\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await expect(httpFetch()(url, get)).rejects.toThrow('without an answer');
});

test.each([
  ['chunks of a byte', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', '1\r\nx\r\n', 'too small'],
  [
    'extensions of chunks',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
    `1;${'a'.repeat(9_000)}\r\nx\r\n`,
    'too small',
  ],
  ['answers before the answer', '', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'without end'],
])('%s without end are given up, and the connection with them', async (_, first, again, why) => {
  const piece = again.repeat(Math.ceil(60_000 / again.length));
  const gone = Promise.withResolvers<void>();
  const server = createConnections((socket) => {
    const more = (error?: Error | null): void => void (error != null || socket.destroyed || socket.write(piece, more));
    socket.on('error', () => undefined).on('close', gone.resolve);
    socket.once('data', () => socket.write(first + piece, more));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await expect(httpFetch()(url, get).then(text)).rejects.toThrow(why);
  await gone.promise;
});

test('an answer in chunks of a usual size is read, and so are a few small ones', async () => {
  const { url } = await serve((_, response) => {
    response.writeProcessing();
    for (let i = 0; i < 20; i++) response.write('x');
    for (let i = 0; i < 200; i++) response.write(Buffer.alloc(1_000, 0x78));
    response.end();
  });
  expect((await httpFetch()(url, get).then(text)).length).toBe(200_020);
});
