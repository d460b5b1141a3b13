/** One client that asks as often as it can delays others by one of its requests at a time, and nobody is refused. */

import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { SOCKETS } from '../../protocol/api/routes.ts';
import { TrustedProxies } from '../../runtime/clients/client-address.ts';
import { BEGUN_AT_ONCE, ClientTurns } from '../../runtime/door/client-turns.ts';
import { Door, type DoorOptions, SMALL_DOOR } from '../../runtime/door/door.ts';
import { ApiBed } from '../api/api-bed.ts';
import { quietLog } from '../quiet-log.ts';

const [GREEDY, OTHER] = ['127.0.0.2', '127.0.0.3'] as const;

test('of each client one begins in a turn of the event loop, of very many clients as many as there is time for', async () => {
  const begun: string[] = [];
  const turns = new ClientTurns();
  const add = (client: string) => turns.add(client, () => begun.push(client));
  for (let i = 0; i < 3; i++) add('a');
  add('b');
  const takenBack = add('c');
  takenBack();
  await turn();
  expect(begun).toEqual(['a', 'b']);
  await turn();
  await turn();
  expect(begun).toEqual(['a', 'b', 'a', 'a']);
  expect(turns.clients).toBe(0);
  for (let i = 0; i < 2 * BEGUN_AT_ONCE; i++) add(`many ${i}`);
  await turn();
  expect(begun.length).toBe(4 + BEGUN_AT_ONCE);
  await turn();
  expect(begun.length).toBe(4 + 2 * BEGUN_AT_ONCE);
  // One that is taken back late, when its client waits with another, leaves that alone.
  const late = add('d');
  await turn();
  add('d');
  late();
  expect(turns.clients).toBe(1);
});

/** Counts in turns of the event loop, not in time: each is short here. */
async function turnsUntil(look: () => boolean): Promise<void> {
  while (!look()) await turn();
}

type Bed = { readonly port: number; readonly begun: string[] };

async function open(options: Partial<DoorOptions> = {}): Promise<Bed> {
  const begun: string[] = [];
  const door = new Door(
    { name: 'test', limits: SMALL_DOOR, hosts: null, origins: null, inTurns: true, ...options },
    {
      request: ({ socket, headers }, response) => {
        begun.push(`${headers['x-forwarded-for'] ?? socket.remoteAddress}`);
        response.end('served');
      },
      upgrade: ({ socket }) => {
        begun.push(`upgrade ${socket.remoteAddress}`);
        socket.destroy();
      },
    },
    { log: quietLog },
  );
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' });
  onTestFinished(() => door.close());
  return { port, begun };
}

async function dial(port: number, localAddress: string): Promise<Socket & { answers: number }> {
  const socket = Object.assign(connect({ host: '127.0.0.1', port, localAddress }), { answers: 0 });
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.on('data', (data) => {
    socket.answers += data.toString('latin1').split('HTTP/1.1 200').length - 1;
  });
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}

const get = (extra = ''): string => `GET / HTTP/1.1\r\nhost: x\r\n${extra}\r\n`;
const CONNECTIONS = 30;
const PIPELINED = 8;

test.each([
  ['a client', get(), GREEDY, OTHER, OTHER, []],
  ['a client by an upgrade', get(), GREEDY, OTHER, `upgrade ${OTHER}`, []],
  ['a client of a proxy', get('x-forwarded-for: 192.0.2.1\r\n'), GREEDY, GREEDY, '192.0.2.2', [GREEDY]],
])('%s waits for few of the requests that another sent before', async (_name, words, from, other, called, proxies) => {
  const { port, begun } = await open({ proxies: new TrustedProxies(proxies) });
  const greedy = await Promise.all(Array.from({ length: CONNECTIONS }, () => dial(port, from)));
  const one = await dial(port, other);
  for (const socket of greedy) socket.write(words.repeat(PIPELINED));
  await turnsUntil(() => begun.length > 0);
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\n';
  one.write(
    get(called.startsWith('upgrade') ? upgrade : called.startsWith('192') ? `x-forwarded-for: ${called}\r\n` : ''),
  );
  await turnsUntil(() => begun.includes(called));
  expect(begun.indexOf(called)).toBeLessThan((CONNECTIONS * PIPELINED) / 2);
  // Nobody is refused.
  await turnsUntil(() => greedy.every(({ answers }) => answers === PIPELINED));
});

test('requests of a client that is gone are not begun', async () => {
  const { port, begun } = await open();
  const greedy = await Promise.all(Array.from({ length: CONNECTIONS }, () => dial(port, GREEDY)));
  for (const socket of greedy) socket.write(get().repeat(PIPELINED));
  await turnsUntil(() => begun.length > 0);
  for (const socket of greedy) socket.destroy();
  const one = await dial(port, OTHER);
  for (let i = 0; i < CONNECTIONS * PIPELINED; i++) await turn();
  const before = begun.length;
  one.write(get());
  await turnsUntil(() => one.answers === 1);
  expect(begun.length).toBe(before + 1);
  expect(before).toBeLessThan((CONNECTIONS * PIPELINED) / 2);
});

/** The most that a node does of what many clients bring at once, in a turn of the event loop, until it has done all. */
class Most {
  inTurn = 0;
  seen = 0;
  most = 0;

  count(): void {
    this.seen++;
    this.most = Math.max(this.most, ++this.inTurn);
  }

  async until(all: number): Promise<number> {
    while (this.seen < all) {
      await turn();
      this.inTurn = 0;
    }
    return this.most;
  }
}

const addressOf = (i: number): string => `127.0.0.${2 + (i % 3)}`;
/** Three clients, each one of theirs; a turn of the test may see those of two turns. */
const FEW = 6;

test('submissions to a node whose bodies end all at once are looked at in turns of the event loop, not all in one', async () => {
  const api = await ApiBed.forTest();
  const done = new Most();
  vi.spyOn(api.bed.node, 'submitTransaction').mockImplementation(async () => {
    done.count();
    return { status: 'known', id: new Uint8Array(48) };
  });
  const body = JSON.stringify({ api_version: 1, wire_hex: 'ab'.repeat(4_000) });
  const head = `POST /v1/transactions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const ends = await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, i) => dial(api.api.address.port, addressOf(i))),
  );
  await Promise.all(ends.map((end) => new Promise((sent) => end.write(head + body.slice(0, -1), sent))));
  for (let i = 0; i < 2 * CONNECTIONS; i++) await turn();
  for (const end of ends) end.write('}');
  expect(await done.until(CONNECTIONS)).toBeLessThanOrEqual(FEW);
});

test('subscriptions that come at once on many connections are looked at in turns of the event loop, not all in one', async () => {
  const api = await ApiBed.forTest();
  const done = new Most();
  vi.spyOn(api.bed.node.chain, 'transactionStatus').mockImplementation(() => {
    done.count();
    return undefined;
  });
  const { path, subprotocol } = SOCKETS.live;
  const ends = await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, i) => {
      const end = new WebSocket(`${api.base.replace('http', 'ws')}${path}`, [subprotocol], {
        localAddress: addressOf(i),
      });
      onTestFinished(() => end.terminate());
      await new Promise((resolve) => end.once('open', resolve));
      return end;
    }),
  );
  const data = { id: 1, topic: 'transaction', transaction_id: 'ab'.repeat(48) };
  for (const end of ends) end.send(JSON.stringify({ type: 'subscribe', data }));
  expect(await done.until(CONNECTIONS)).toBeLessThanOrEqual(FEW);
});
