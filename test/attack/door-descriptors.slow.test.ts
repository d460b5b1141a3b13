/**
 * Refused, half-open and reset connections in their thousands against each door: within a minute the process holds as many
 * sockets and as much memory as before, and serves as before.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { count, level } from '../level.ts';
import { DOOR_NAMES, type DoorName, Doors, UPGRADES } from './doors-fixture.ts';
import { handshake } from './raw-client.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
afterAll(() => doors.close());

const MEBIBYTE = 1 << 20;
/** What may be left on the heap: caches, and what the collector has not got to. */
const MEMORY = 8 * MEBIBYTE;
const ABREAST = 1_500;

const isHttp = (name: DoorName): boolean => name !== 'stratum';
const refusedAt = (name: DoorName, i: number): string => {
  if (!isHttp(name)) return i % 2 === 0 ? '\0garbage' : 'SVC3';
  // Where there are no WebSockets, a handshake is a request like any other.
  return i % 2 === 0 && UPGRADES[name] !== undefined ? handshake('/nowhere') : 'nonsense\r\n\r\n';
};
const halfAt = (name: DoorName, i: number): string => {
  if (i % 2 === 0) return '';
  return isHttp(name) ? 'GET / HTTP/1.1\r\nhost: x\r\n' : '{"jsonrpc":"2.0"';
};
const resetAt = (name: DoorName, i: number): string =>
  i % 2 === 0 ? refusedAt(name, i >> 1) : isHttp(name) ? 'GET / HTTP/1.1\r\nhost: x\r\n\r\n' : 'SVC2';

/** Resolves when the door is rid of it. It never closes its own side before. */
function stroke(name: DoorName, i: number): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connect({
      port: doors.ports[name],
      host: '127.0.0.1',
      // From many addresses, so that the limit of one client does not spare the door.
      localAddress: `127.${1 + (i % 7)}.0.${1 + (i % 199)}`,
      allowHalfOpen: true,
    });
    const done = (): void => {
      socket.destroy();
      resolve();
    };
    socket.on('error', done).on('close', done).on('end', done);
    socket.resume();
    socket.on('connect', () => {
      const kind = i % 3;
      const text = [refusedAt, halfAt, resetAt][kind]?.(name, Math.floor(i / 3)) ?? '';
      if (text !== '') socket.write(text);
      if (kind === 2) setImmediate(() => socket.resetAndDestroy());
    });
  });
}

async function attack(name: DoorName, connections: number): Promise<void> {
  let begun = 0;
  await Promise.all(
    Array.from({ length: Math.min(ABREAST, connections) }, async () => {
      while (begun < connections) await stroke(name, begun++);
    }),
  );
}

/** Sockets and memory, once they are what they were, or after some minutes what they have become. */
async function settled(before: number): Promise<{ seconds: number; held: number; heap: number; rss: number }> {
  const began = performance.now();
  for (;;) {
    const held = doors.held();
    const { heap, rss, errors, faults } = await doors.figures();
    expect({ errors, faults }).toEqual({ errors: [], faults: 0 });
    const seconds = (performance.now() - began) / 1_000;
    if (seconds > 240 || (held === 0 && heap <= before + MEMORY)) return { seconds, held, heap, rss };
    await sleep(250);
  }
}

const connections = count({ quick: 100, full: 300, deep: 20_000 });
// In turn where each is attacked for minutes; together where it only takes their time limits to pass.
const rounds: readonly (readonly DoorName[])[] = level === 'deep' ? DOOR_NAMES.map((name) => [name]) : [DOOR_NAMES];

test.each(rounds.map((names) => [names.join(', '), names] as const))(
  '%s',
  async (_title, names) => {
    // Those that are over at once have the code compiled and the caches filled.
    await Promise.all(names.map((name) => Promise.all(Array.from({ length: 30 }, (_, i) => stroke(name, 3 * i)))));
    await settled(Number.POSITIVE_INFINITY);
    const before = await doors.figures();
    await Promise.all(names.map((name) => attack(name, connections)));
    const after = await settled(before.heap);
    if (level === 'deep')
      console.log(
        `${names.join()}: ${connections} connections; after ${after.seconds.toFixed(1)} s ${after.held} sockets, ` +
          `heap ${((after.heap - before.heap) / MEBIBYTE).toFixed(1)} MiB, rss ${((after.rss - before.rss) / MEBIBYTE).toFixed(1)} MiB more`,
      );
    expect(after.held).toBe(0);
    expect(after.heap - before.heap).toBeLessThanOrEqual(MEMORY);
    expect(doors.isAlive).toBe(true);
    await doors.expectServed();
  },
  1_200_000,
);
