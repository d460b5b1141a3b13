/** The one listener by itself: what it refuses, how long it waits, and what is left of a client that met a defect. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { TrustedProxies } from '../../runtime/clients/client-address.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import { readBody } from '../../runtime/door/body.ts';
import { Door, type DoorHandlers, type DoorOptions, refuseUpgrade, SMALL_DOOR } from '../../runtime/door/door.ts';
import { admitsHost, hostNameOf } from '../../runtime/door/host-name.ts';
import { ClientPlaces } from '../../runtime/door/places.ts';
import { readTarget } from '../../runtime/door/target.ts';
import { WebSockets, type WebSocketsOptions } from '../../runtime/door/web-sockets.ts';
import { InvariantError } from '../../runtime/invariant.ts';
import { dial, handshake, type RawClient, say, socketsOf } from '../attack/raw-client.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

type Made = { readonly port: number; readonly door: Door; readonly lines: string[] };

async function open(handlers: Partial<DoorHandlers>, options: Partial<DoorOptions> = {}): Promise<Made> {
  const lines: string[] = [];
  const log = { error: (message: string, fields = {}) => void lines.push(`${message} ${JSON.stringify(fields)}`) };
  const door = new Door(
    { name: 'test', limits: SMALL_DOOR, hosts: [], origins: [], ...options },
    { request: (_request, response) => void response.end('served'), ...handlers },
    { log },
  );
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' });
  onTestFinished(() => door.close());
  return { port, door, lines };
}

const sockets = (options: Partial<WebSocketsOptions> = {}): WebSockets => {
  const made = new WebSockets({ name: 'test', frameBytes: 100, pingMillis: 60_000, ...options }, { log: quietLog });
  onTestFinished(() => made.close(1001, 'done'));
  return made;
};

const get = (target: string, headers = 'host: 127.0.0.1\r\n'): string =>
  `GET ${target} HTTP/1.1\r\n${headers}connection: close\r\n\r\n`;
const status = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);

test('targets are read without a throw, whatever they are', () => {
  expect(readTarget('/a?b=c?d')).toEqual({ path: '/a', query: 'b=c?d' });
  expect(readTarget('//')).toEqual({ path: '//', query: '' });
  expect(readTarget('/\\@[]:99999/%')).toEqual({ path: '/\\@[]:99999/%', query: '' });
  for (const none of [undefined, '', '*', 'http://x/', 'x:1']) expect(readTarget(none)).toBeUndefined();
});

test.each(['//', '///', '/\\', '//[', '/?//', '/%', '/:x@:/', '//:0'])(
  'the target %s is handed on as it is',
  async (target) => {
    const seen: string[] = [];
    const { port } = await open({
      request: (_request, response, { path, query }) => void response.end(`${path}|${query}`),
      upgrade: (_request, socket, _head, { path }) => {
        seen.push(path);
        refuseUpgrade(socket, { status: 404, type: 'text/plain', body: '' });
      },
    });
    expect(status(await say(port, get(target)))).toBe(200);
    expect(status(await say(port, handshake(target)))).toBe(404);
    expect(seen).toEqual([target.split('?')[0]]);
  },
);

test('what is no path, no request or too long is refused in words', async () => {
  const { port } = await open({});
  expect(status(await say(port, get('http://127.0.0.1/')))).toBe(400);
  expect(status(await say(port, 'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n'))).toBe(400);
  expect(await say(port, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 .*\[bad_request\]\n$/s);
  expect(await say(port, `GET / HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(9_000)}\r\n\r\n`)).toMatch(
    /431 .*headers_too_large/s,
  );
  expect(await say(port, Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]))).toMatch(/^HTTP\/1\.1 400/);
  // Nobody tunnels through here.
  expect(await say(port, 'CONNECT 127.0.0.1:1 HTTP/1.1\r\nhost: x\r\n\r\n')).toBe('');
});

test('a name that anybody could own is not a name of this door; addresses, local and listed names are', async () => {
  expect(hostNameOf('[::1]:80')).toBe('::1');
  expect(hostNameOf('EVIL.example.:80')).toBe('evil.example');
  for (const local of [
    '127.0.0.1:1',
    '[::1]',
    'localhost:28770',
    'rig7',
    'a.localhost',
    'rig.local',
    'x.internal',
    '10.1.1.1',
  ])
    expect([local, admitsHost(local, [])]).toEqual([local, true]);
  for (const foreign of [
    'evil.example',
    'evil.example:28770',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'a.local.b',
  ])
    expect([foreign, admitsHost(foreign, [])]).toEqual([foreign, false]);
  const { port } = await open({ upgrade: (_request, socket) => void socket.destroy() }, { hosts: ['node.example'] });
  const from = (host: string) => say(port, get('/', `host: ${host}\r\n`));
  expect(status(await from('node.example:1'))).toBe(200);
  expect(await from('evil.example')).toMatch(/^HTTP\/1\.1 421 .*--host-name evil\.example \[host_refused\]/s);
  expect(status(await say(port, handshake('/', { host: 'evil.example' })))).toBe(421);
  // What a listed proxy passes on has the name that the public knows.
  const behind = await open({}, { proxies: new TrustedProxies(['127.0.0.1']) });
  expect(status(await say(behind.port, get('/', 'host: evil.example\r\n')))).toBe(200);
});

test('a web page is served only from an origin that is admitted', async () => {
  const { port } = await open({}, { origins: ['https://a.example'] });
  const from = async (origin: string) => status(await say(port, get('/', `host: x\r\norigin: ${origin}\r\n`)));
  expect(await from('https://a.example')).toBe(200);
  expect(await from('https://b.example')).toBe(403);
  expect(await from('null')).toBe(403);
});

test('a refused connection is gone on our side though the client never closes its own', async () => {
  const { port, door } = await open({
    upgrade: (_request, socket) => refuseUpgrade(socket, { status: 403, type: 'text/plain', body: 'no' }),
  });
  const before = socketsOf();
  const refused = [handshake('/'), 'nonsense\r\n\r\n', handshake('/', { host: 'evil.example' }), handshake('*')];
  const clients = await Promise.all(Array.from({ length: 40 }, (_, i) => dial(port, refused[i % refused.length])));
  await Promise.all(clients.map(({ ended }) => ended));
  for (const { text } of clients) expect(status(text)).toBeGreaterThanOrEqual(400);
  await expect.poll(() => door.figures.open).toBe(0);
  // What is left are the clients' own halves.
  expect(socketsOf() - before).toBeLessThanOrEqual(40);
  for (const { socket } of clients) socket.destroy();
});

test('who is refused in the middle of a body reads why, though it goes on sending, and is gone in its time', async () => {
  const answered = Promise.withResolvers<void>();
  const { port, door } = await open({
    request: async (request, response) => {
      request.socket.once('finish', answered.resolve);
      const body = await readBody(request, 1_000);
      response.writeHead(body === 'too_large' ? 413 : 200, { connection: 'close' }).end('told');
    },
  });
  const part = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
  const client = await dial(port, 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  client.socket.pause();
  client.socket.write(part);
  await answered.promise;
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  // Sent behind the answer, by a client that has not come to read it: a reset would take the answer with it.
  for (let i = 0; i < 20 && !client.socket.destroyed; i++)
    await new Promise<void>((resolve) => client.socket.write(part, () => resolve()));
  client.socket.resume();
  await client.ended;
  expect(status(client.text)).toBe(413);
  await until(() => door.figures.open === 0);
});

test('nothing sent, half a head, half a body, no answer: each has its time', async () => {
  const { port, door } = await open(
    {
      request: async (request, response, { path }) => {
        if (path === '/never') return;
        const body = await readBody(request, 200_000);
        if (body !== 'incomplete') response.end('whole');
      },
    },
    {
      limits: {
        ...SMALL_DOOR,
        // A client that asks at once has long enough for that, also on a busy machine.
        headMillis: 3_000,
        requestMillis: 3_000,
        answerMillis: 3_000,
        idleMillis: 500,
      },
    },
  );
  const post = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf';
  const firsts = ['', 'GET / HTT', post, get('/never'), 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'];
  const clients = await Promise.all(firsts.map((first) => dial(port, first === '' ? undefined : first)));
  await expect.poll(() => door.figures.open).toBe(0);
  expect(status(clients[0]?.text ?? '')).toBe(408);
  expect(status(clients[1]?.text ?? '')).toBe(408);
  expect(status(clients[4]?.text ?? '')).toBe(200);
  for (const { socket } of clients) socket.destroy();
});

test('an answer that is not read has the time of a stall, however long answers may take', async () => {
  const large = Buffer.alloc(64 << 20, 'x');
  const limits = { ...SMALL_DOOR, answerMillis: 3_600_000, idleMillis: 3_600_000, stallMillis: 1_000 };
  const { port, door } = await open({ request: (_request, response) => void response.end(large) }, { limits });
  const client = await dial(port, get('/'));
  client.socket.pause();
  await expect.poll(() => door.figures.open).toBe(0);
  client.socket.destroy();
});

test('places: in all, of one client, and those that only this machine gets', () => {
  const places = new ClientPlaces({ connections: 6, perClient: 3, reserved: 2 }, new TrustedProxies(['10.0.0.9']));
  const take = (remote: string) => places.take(remote, '127.0.0.1');
  expect([take('10.0.0.1'), take('10.0.0.1'), take('10.0.0.1'), take('10.0.0.1')]).toEqual([
    ...Array(3).fill('10.0.0.1'),
    undefined,
  ]);
  expect(take('2001:db8::1')).toBe('2001:db8:0:0::/64');
  expect(take('10.0.0.2')).toBeUndefined();
  expect([take('127.0.0.1'), take('::1'), take('127.0.0.1')]).toEqual(['127.0.0.1', '::1', undefined]);
  places.giveBack('10.0.0.1');
  places.giveBack('127.0.0.1');
  places.giveBack('2001:db8:0:0::/64');
  expect([take('10.0.0.9'), take('127.0.0.1')]).toEqual(['10.0.0.9', '127.0.0.1']);
});

test('connections are counted before anything is read', async () => {
  const { port, door } = await open({}, { limits: { ...SMALL_DOOR, perClient: 3 } });
  const clients = await Promise.all(Array.from({ length: 5 }, () => dial(port)));
  await expect.poll(() => door.figures.refused).toBe(2);
  await expect.poll(() => clients.filter(({ socket }) => socket.destroyed || socket.readableEnded).length).toBe(2);
  for (const { socket } of clients) socket.destroy();
  await expect.poll(() => door.figures.open).toBe(0);
  expect(status(await say(port, get('/')))).toBe(200);
});

test('a defect met over one request ends that client, is logged and counted; others are served', async () => {
  const fail = (path: string, response: ServerResponse): Promise<void> | undefined => {
    if (path === '/now') throw new TypeError('a defect');
    if (path === '/later') return sleep(5).then(() => Promise.reject(new TypeError('a later defect')));
    if (path === '/begun') {
      response.write('begun');
      throw new TypeError('a defect in between');
    }
    response.end('served');
    return undefined;
  };
  const { port, lines } = await open({
    request: (_request, response, { path }) => fail(path, response),
    upgrade: () => {
      throw new TypeError('a defect of an upgrade');
    },
  });
  expect(await say(port, get('/now'))).toMatch(/^HTTP\/1\.1 500 .*\[internal\]\n$/s);
  expect(await say(port, get('/later'))).toMatch(/^HTTP\/1\.1 500/);
  expect(status(await say(port, get('/begun')))).not.toBe(500);
  expect(await say(port, handshake('/'))).toBe('');
  expect(status(await say(port, get('/')))).toBe(200);
  expect(lines).toHaveLength(4);
  expect(lines[0]).toMatch(/a client was ended by a defect of this program .*"door":"test".*a defect/);
  expect(clientFaults.take()).toBe(4);
});

test('a broken invariant is nobody’s to catch', () => {
  expect(() => clientFaults.report('test', new InvariantError('two and two are not four'), quietLog)).toThrow(
    /not four/,
  );
  expect(clientFaults.total).toBe(0);
});

test('a defect in what a WebSocket’s listener does ends that WebSocket', async () => {
  const made = sockets();
  const { port } = await open({
    upgrade: (request: IncomingMessage, socket, head, { path }) =>
      made.accept(request, socket, head, { client: 'x' }, (opened) => {
        if (path === '/start') throw new TypeError('a defect at the start');
        opened.on('message', (data) => {
          if (String(data) === 'fail') throw new TypeError('a defect over a message');
          opened.send(data);
        });
      }),
  });
  const connect = (path: string) => new WebSocket(`ws://127.0.0.1:${port}${path}`).on('error', () => undefined);
  const good = connect('/');
  const echoed = new Promise((resolve) => good.on('message', resolve));
  await new Promise((resolve) => good.on('open', resolve));
  const bad = connect('/').on('open', () => bad.send('fail'));
  await Promise.all([bad, connect('/start')].map((each) => new Promise((resolve) => each.on('close', resolve))));
  good.send('still here');
  expect(String(await echoed)).toBe('still here');
  good.terminate();
  expect(clientFaults.take()).toBe(2);
});

/** A door whose WebSockets belong to the client that the path names. */
const openSockets = async (options: Partial<WebSocketsOptions>) => {
  const made = sockets(options);
  const opened = await open({
    upgrade: (request, socket, head, { path }) => {
      if (made.isFull(path)) refuseUpgrade(socket, { status: 503, type: 'text/plain', body: '' });
      else made.accept(request, socket, head, { client: path }, () => undefined);
    },
  });
  return { ...opened, made };
};

test('WebSockets: places of one client and of all', async () => {
  const { port } = await openSockets({ perClient: 2, most: 3 });
  const codes: number[] = [];
  const clients: RawClient[] = [];
  for (const client of ['/a', '/a', '/a', '/b', '/b']) {
    const dialled = await dial(port, handshake(client));
    clients.push(dialled);
    await expect.poll(() => dialled.text).toMatch(/\r\n\r\n/);
    codes.push(status(dialled.text));
  }
  expect(codes).toEqual([101, 101, 503, 101, 503]);
  for (const { socket } of clients) socket.destroy();
});

test('WebSockets: silent readers, broken frames, broken handshakes', async () => {
  const { port, door, made } = await openSockets({ perClient: 2, most: 3, pingMillis: 200 });
  const silent = await dial(port, handshake('/a'));
  await expect.poll(() => status(silent.text)).toBe(101);
  // It answers no ping.
  await silent.ended;
  await expect.poll(() => made.open).toBe(0);
  expect(status(await say(port, handshake('/a', { 'sec-websocket-key': '' })))).toBe(400);
  expect(status(await say(port, handshake('/a', { 'sec-websocket-version': '7' })))).toBe(400);
  const broken = await dial(port, handshake('/a'));
  await expect.poll(() => broken.text).toMatch(/\r\n\r\n/);
  broken.socket.write(Buffer.from([0xff, 0xff, 0xff]));
  await broken.ended;
  await expect.poll(() => made.open + door.figures.open).toBe(0);
  for (const { socket } of [silent, broken]) socket.destroy();
});

test('a stop waits for what is being handled, though its client is gone', async () => {
  let isHandled = false;
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { port, door } = await open({
    request: async (_request, response) => {
      begun.resolve();
      await goOn.promise;
      isHandled = true;
      response.end('late');
    },
  });
  const client = await dial(port, get('/'));
  await begun.promise;
  client.socket.destroy();
  const closed = door.close();
  expect(await Promise.race([closed, sleep(100, 'waits')])).toBe('waits');
  goOn.resolve();
  await closed;
  expect(isHandled).toBe(true);
});

test('a stop does not wait for those who do not close', async () => {
  const { port, door } = await open({});
  const clients = await Promise.all([dial(port), dial(port, 'GET / HT'), dial(port, 'nonsense\r\n\r\n')]);
  await door.close(100);
  for (const { socket } of clients) socket.destroy();
});

test('a packet full of requests is not begun whole: the connection ends', async () => {
  let begun = 0;
  const waiting: ServerResponse[] = [];
  const { port } = await open({
    request: (_request, response) => {
      begun++;
      waiting.push(response);
    },
  });
  const many = await dial(port, 'GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'.repeat(1_000));
  await many.ended;
  expect(begun).toBe(8);
  // As many as hardly any program sends at once are served, in order.
  begun = 0;
  waiting.length = 0;
  const some = await dial(port, get('/').replace('connection: close\r\n', '').repeat(7) + get('/'));
  await expect.poll(() => begun).toBe(8);
  waiting.forEach((response, i) => void response.end(`answer ${i};`));
  await some.ended;
  expect(some.text.match(/answer \d+;/g)).toEqual(Array.from({ length: 8 }, (_, i) => `answer ${i};`));
  some.socket.destroy();
});
