/** A page whose origin is not the pool's is refused its WebSockets, and the log names both values once. */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { quietLog } from '../quiet-log.ts';
import { webBed } from './web-bed.ts';

test('a WebSocket of a page of another origin is refused, and the log names origin and host once', async () => {
  const warned: unknown[] = [];
  const log = { ...quietLog, warn: (message: string, fields: object) => void warned.push({ message, ...fields }) };
  const served: string[] = [];
  const port = await webBed([], {
    live: (request, socket) => {
      served.push(String(request.headers.origin));
      socket.destroy();
    },
    log: log as never,
  });
  const host = `127.0.0.1:${port}`;
  const ask = async (origin: string) => {
    const socket = new WebSocket(`ws://${host}/api/v1/live`, { origin });
    const [error] = (await once(socket, 'error')) as [Error];
    return error.message;
  };
  for (let i = 0; i < 2; i++) expect(await ask('https://pool.example:8443')).toContain('403');
  expect(warned).toEqual([expect.objectContaining({ origin: 'https://pool.example:8443', host })]);
  await ask(`http://${host}`);
  expect(served).toEqual([`http://${host}`]);
});
