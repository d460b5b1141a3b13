/**
 * Chooses ports for programs that need a fixed one. A port that the system picks (0) comes from the range of outgoing
 * connections, so one of those may take it before the program binds it, or while it restarts; these lie below that
 * range. Between the choice and the bind minutes may pass, and another program may choose as well: so the UDP port of
 * the same number is held until this process ends, and a port is chosen only by those who get both.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const RANGE = { first: 12_000, end: 32_000 };
const HOST = '127.0.0.1';

/** Held by a socket that drops what it gets and keeps no process alive. */
function claim(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  return new Promise((resolve) => {
    socket.once('error', () => {
      socket.close();
      resolve(false);
    });
    socket.bind({ port, address: HOST, exclusive: true }, () => {
      socket.unref();
      resolve(true);
    });
  });
}

/** Listens once without sharing the port, and closes again. Returns the error where that fails. */
export function tryPort(address: { readonly host: string; readonly port: number }): Promise<Error | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once('error', resolve);
    server.listen({ ...address, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** On this machine's own address. */
export const isUnused = async (port: number): Promise<boolean> => (await tryPort({ host: HOST, port })) === undefined;

/** Claimed before it is tried: between two that try the same one, at most one has it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(RANGE.first, RANGE.end);
    if ((await claim(port)) && (await isUnused(port))) return port;
  }
}

export function freePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, freePort));
}
