/**
 * Ports for programs that must be told theirs. A port that the system picks (0) comes from the range of outgoing connections,
 * so one of those may take it before the program binds it, or while it restarts; these lie below that range. Between the choice
 * and the bind minutes may pass, and another program may choose as well: so the UDP port of the same number is held until
 * this process ends, and a port is chosen only by those who get both.
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

function isUnused(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ port, host: HOST, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

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
