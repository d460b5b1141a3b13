/** The pool is open for miners and readers before its wallet has answered anything. */
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { openPoolBed } from './pool-bed.ts';

const FOREIGN = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  error: { code: -32000, message: 'no', data: { code: 'address_not_mine' } },
});

test('a restarted pool serves before its wallet answers, and then still says that the wallet is not its own', async () => {
  const waiting: ServerResponse[] = [];
  let isMute = false;
  const server = createServer((_, response) => (isMute ? void waiting.push(response) : void response.end(FOREIGN)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const errors: string[] = [];
  const log = createLogger(
    'test',
    { filter: readLevelFilter('error'), format: 'text' },
    {
      sink: { write: (line) => void errors.push(line), flush: () => undefined, close: () => undefined },
      now: Date.now,
    },
  );
  const { port } = server.address() as AddressInfo;
  const bed = await openPoolBed([], { wallet: `http://127.0.0.1:${port}`, log });
  const dataDir = join(temporaryDirectory(), 'pool');
  // Without the token nothing asks the wallet, and the address that is named counts.
  await (await bed.start(dataDir)).stop();
  writeFileSync(`${dataDir}.token`, 'token', { mode: 0o600 });
  isMute = true;
  const pool = await bed.start(dataDir);
  await until(() => waiting.length > 0);
  expect((await fetch(`http://127.0.0.1:${pool.web.port}/api/v1/status`)).status).toBe(200);
  expect(errors).toEqual([]);
  isMute = false;
  for (const response of waiting) response.end(FOREIGN);
  await until(() => errors.some((line) => line.includes('THE WALLET DOES NOT OWN')));
});
