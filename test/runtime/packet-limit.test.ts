/** A packet with thousands of requests costs the thread no more than a few of them. What programs send is answered: door.long.test.ts. */
import { expect, onTestFinished, test } from 'vitest';
import { Door, SMALL_DOOR } from '../../runtime/door/door.ts';
import { say } from '../attack/raw-client.ts';
import { quietLog } from '../quiet-log.ts';

async function open(): Promise<{ readonly port: number; readonly begun: () => number }> {
  const options = { name: 'test', limits: SMALL_DOOR, hosts: null, origins: null } as const;
  const door = new Door(options, { request: (_request, response) => void response.end('served') }, { log: quietLog });
  let begun = 0;
  // An Expect that is none is refused by node:http alone, where nobody listens for it.
  for (const event of ['request', 'checkExpectation']) door.server.on(event, () => begun++);
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 }, { what: 'tests' });
  onTestFinished(() => door.close());
  return { port, begun: () => begun };
}

const get = (header: string) => `GET /a HTTP/1.1\r\nhost: x\r\n${header}\r\n`;

test.each([
  ['requests', ''],
  ['requests with a body', 'content-length: 0\r\n'],
  ['requests that node:http refuses', 'expect: x\r\n'],
])('of 1,000 %s in one packet a few are begun, and the connection ends', async (_name, header) => {
  const { port, begun } = await open();
  await say(port, get(header).repeat(1_000));
  expect(begun()).toBeGreaterThan(0);
  expect(begun()).toBeLessThan(10);
});
