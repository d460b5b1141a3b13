/** A check is worth something only if it finds a lie: for each fact here a server that breaks it, and nothing else. */
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { checkAll, type Target } from './fact.ts';
import { FACTS } from './facts.ts';

type Answer = { readonly status?: number; readonly body: object };
type Asked = { readonly path: string; readonly query: URLSearchParams; readonly body: Record<string, unknown> };

async function liar(answer: (asked: Asked) => Answer): Promise<string> {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://liar');
    const { status = 200, body } = answer({ path, query, body: text === '' ? {} : JSON.parse(text) });
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ api_version: 1, ...body }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const ID = 'ab'.repeat(48);
const event = (index: number) => ({ kind: 'received', outpoint: { transaction_id: ID, output_index: index } });

const LIES: [string, (asked: Asked) => Answer][] = [
  [
    'the expected staking reward grows with the amount, and not faster',
    ({ query }) => ({ body: { reward_per_day: String(BigInt(query.get('amount') ?? 0) ** 2n) } }),
  ],
  ['the expected staking reward grows with the amount, and not faster', () => ({ body: { reward_per_day: '7' } })],
  ['JSON statistics of bridge and miner at `/v1/stats`', () => ({ status: 404, body: {} })],
  [
    'POST `/v1/mining/candidates`: a header without work is refused',
    ({ path }) => ({
      body: path.endsWith('candidates') ? { status: 'accepted' } : { header_hex: '0'.repeat(624), body_hex: '00' },
    }),
  ],
  [
    'block document: `reward.state` and the amounts',
    ({ path }) => ({
      body: path.endsWith('recent') ? { blocks: [{ block_id: ID }] } : { reward: { state: 'paid', amount: 5 } },
    }),
  ],
  [
    'a list goes on with `next_cursor`, without gaps and repeats, and the last page has none',
    ({ query }) => ({
      body: query.has('cursor')
        ? { events: [event(0)], next_cursor: 'same' }
        : { events: query.get('limit') === '1' ? [event(0)] : [event(0), event(1)], next_cursor: 'same' },
    }),
  ],
  [
    'a list goes on with `next_cursor`, without gaps and repeats, and the last page has none',
    ({ query }) => ({
      body: query.has('cursor')
        ? { events: [event(2)] }
        : query.get('limit') === '1'
          ? { events: [event(0)], next_cursor: 'next' }
          : { events: [event(0), event(1), event(2)] },
    }),
  ],
];

test.each(LIES)('%s: %#', async (fact, answer) => {
  const url = await liar(answer);
  const target: Target = { api: url, mining: url, bridgeStats: url, minerStats: url, address: 'an address' };
  const own = FACTS.filter((one) => one.fact === fact);
  expect((await checkAll(own, target)).map(({ state }) => state)).toEqual(['differs']);
});
