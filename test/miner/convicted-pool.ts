/** A pool that shows what convicts it, and the miner's files about it. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { PoolBooks } from '../../miner/books/pool-books.ts';
import { fetchFromNode } from '../../miner/client/transport-node.ts';
import { fromHex } from '../../protocol/bytes.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';

type Vectors = {
  readonly pool_key: string;
  readonly evidence: readonly { evidence: { receipts: { address: string; slice: number }[]; leaf: unknown } }[];
};

/** A pool that shows what convicts it, from the second question on. */
export async function convictedPool() {
  const file = new URL('../../vectors/receipts.json', import.meta.url);
  const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vectors;
  const { receipts, leaf } = (vectors.evidence[0] as Vectors['evidence'][number]).evidence;
  const [{ address, slice }] = receipts as [{ address: string; slice: number }];
  const server = createServer((request, answer) => {
    const url = new URL(request.url ?? '', 'http://pool');
    if (!url.pathname.endsWith('/receipts')) return answer.writeHead(404).end('{}');
    const isFirst = url.searchParams.get('after') === '2000000000';
    const slices = isFirst ? [] : [{ service: 'pplns', slice, receipts, leaf, record: null }];
    const newest = isFirst ? slice - 1 : slice;
    return answer.end(JSON.stringify({ kept_from: 1, newest, through: newest, more: false, slices }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  onTestFinished(() => server.closeAllConnections());
  return { api: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: fromHex(vectors.pool_key), address };
}

export type Noted = Readonly<Record<string, unknown>>;

export function booksOf(
  dataDir: string,
  pool: Awaited<ReturnType<typeof convictedPool>>,
  onAlarm: (fields: Noted) => void,
) {
  const { api, key, address } = pool;
  const books = new PoolBooks(
    {
      dataDir,
      network: 'development',
      pools: ['pool'],
      address,
      worker: '',
      api,
      poolKey: undefined,
      payoutThreshold: undefined,
      nodeApi: undefined,
    },
    {
      note: (_level, _message, fields) => void (fields.alarm === undefined || onAlarm(fields)),
      now: () => performance.now(),
      wall: () => Date.now(),
      random: () => 1,
      fetch: fetchFromNode({ pins: [] }),
    },
  );
  books.of(0)?.offered({ key, api } as ReceiptsOffer);
  return books;
}

export async function raised(books: PoolBooks): Promise<void> {
  for (let asked = 0; books.figures.alarms === 0; asked++) {
    if (asked % 100 === 0) books.check();
    await setImmediate();
  }
}
