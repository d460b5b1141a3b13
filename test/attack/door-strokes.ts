/** Connections that no door serves: refused, half-open and reset ones, from many addresses. */
import { connect, type Socket } from 'node:net';
import { type DoorName, UPGRADES } from './doors-fixture.ts';
import { handshake } from './raw-client.ts';

/** At once. */
const ABREAST = 1_500;

/**
 * Far longer than any door's time limits. The kernel drops connections that a full backlog has no room for, after it has told the client
 * that they are open: a client that sends nothing would wait for ever for a door that never saw it.
 */
const NEVER_SEEN_MILLIS = 60_000;

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
export function stroke(port: number, name: DoorName, i: number): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connect({
      port,
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
    socket.setTimeout(NEVER_SEEN_MILLIS, done);
    socket.on('connect', () => {
      const kind = i % 3;
      const text = [refusedAt, halfAt, resetAt][kind]?.(name, Math.floor(i / 3)) ?? '';
      if (text !== '') socket.write(text);
      if (kind === 2) setImmediate(() => socket.resetAndDestroy());
    });
  });
}

export async function attack(port: number, name: DoorName, connections: number): Promise<void> {
  let begun = 0;
  await Promise.all(
    Array.from({ length: Math.min(ABREAST, connections) }, async () => {
      while (begun < connections) await stroke(port, name, begun++);
    }),
  );
}
