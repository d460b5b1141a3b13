/**
 * Ports for programs that must be told theirs. A port that the system picks (0) comes from the range of outgoing connections,
 * so one of those may take it before the program binds it, or while it restarts; these lie below that range.
 */
import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

const RANGE = { first: 12_000, end: 32_000 };

async function hold(): Promise<{ readonly port: number; readonly server: Server }> {
  for (;;) {
    const port = randomInt(RANGE.first, RANGE.end);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) =>
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)),
    );
    if (isFree) return { port, server };
  }
}

/** All are held while they are chosen, so that no two are equal. */
export async function freePorts(count: number): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: count }, hold));
  await Promise.all(held.map(({ server }) => new Promise((resolve) => server.close(resolve))));
  return held.map(({ port }) => port);
}

export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] as number;
}
