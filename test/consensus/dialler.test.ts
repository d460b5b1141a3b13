/** A neighbour that is dialled and breaks rules is dialled ever more rarely, and never given up: over real sockets, with timers by hand. */
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Dialler, type Ending } from '../../node/consensus/reach/dialler.ts';

let server: Server;
let dialler: Dialler;
const sockets = new Set<Socket>();
let now = 0;
let dials = 0;
let connected = Promise.withResolvers<Ending>();

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  [now, dials, connected] = [0, 0, Promise.withResolvers<Ending>()];
  server = createServer((socket) => sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  dialler = new Dialler(() => now);
  dialler.keep({
    next: () => {
      dials++;
      return { host: '127.0.0.1', port };
    },
    connected: (socket, _, ended) =>
      connected.resolve((...how) => {
        socket.destroy();
        ended(...how);
      }),
    firstRetryMillis: 250,
    lastRetryMillis: 5_000,
  });
});

afterEach(async () => {
  vi.useRealTimers();
  dialler.close();
  const closed = new Promise((resolve) => server.close(resolve));
  for (const socket of sockets) socket.destroy();
  await closed;
});

/** Milliseconds from the end of a connection to the next dial. */
async function waits(...how: Parameters<Ending>): Promise<number> {
  const ended = await connected.promise;
  connected = Promise.withResolvers();
  ended(...how);
  const [before, from] = [dials, now];
  while (dials === before) {
    now += 50;
    await vi.advanceTimersByTimeAsync(50);
  }
  return now - from;
}

test('each further fault makes the wait longer up to the bar of an address; a proper end in between does not shorten it, good behaviour for long does', async () => {
  expect(await waits(true)).toBe(250);
  const faults: number[] = [];
  for (let i = 0; i < 5; i++) {
    faults.push(await waits(true, 'wrong_body'));
    expect(await waits(true)).toBe(250);
  }
  expect(faults).toEqual([2_500, 5_000, 10_000, 10_000, 10_000]);
  now += 60_001;
  expect(await waits(true, 'wrong_body')).toBe(2_500);
});
