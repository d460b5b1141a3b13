/** Conventions of the HTTP API; Endpoints: public HTTP API, pagination; Resources; Versioning. */
import assert from 'node:assert/strict';
import { ATOMS, documentAt, get, HEX_96, post, until, wait } from './client.ts';
import { type Fact, factsOf, needs, type Target } from './fact.ts';
import { batchBody } from './unshown.ts';

type Entry = Record<string, unknown>;
const entriesOf = (document: Entry): Entry[] => Object.values(document).find(Array.isArray) as Entry[];
const isInteger = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** A cut with transactions, and one of its transactions. */
async function someTransaction({ api }: Target): Promise<{ id: string; height: number }> {
  return await until(
    async () => {
      const [recent] = entriesOf(await documentAt(`${api}/v1/transactions/recent?limit=1`));
      if (recent === undefined) return { id: '', height: 0 };
      const id = String(recent.transaction_id);
      const status = await documentAt(`${api}/v1/transactions/${id}/status`);
      return { id, height: Number((status.finalized_cut as Entry | null)?.height ?? 0) };
    },
    ({ height }) => height > 0,
    4 * wait.seconds,
  );
}

const someBlock = async ({ api }: Target): Promise<string> =>
  await until(
    async () => String(entriesOf(await documentAt(`${api}/v1/blocks/recent?limit=1`))[0]?.block_id ?? ''),
    (id) => id !== '',
    4 * wait.seconds,
  );

const PLAIN = [
  '/v1/cuts',
  '/v1/transactions/recent',
  '/v1/blocks/recent',
  '/v1/transactions/manifest',
  '/v1/chain/head',
  '/v1/chain/rates',
  '/v1/mempool',
  '/v1/node/identity',
  '/v1/node/sync',
  '/v1/node/status',
  '/v1/economics/supply',
  '/v1/economics/emission',
  '/v1/economics/estimate/staking?amount=100000000',
];
const BATCHES = [
  '/v1/address/balances',
  '/v1/address/utxos',
  '/v1/address/changes',
  '/v1/mempool/pending',
  '/v1/staking/positions',
  '/v1/keys/registered',
];
/** Route, default (undefined: not given) and maximum. */
const PAGES: [string, number | undefined, number][] = [
  ['/v1/cuts', 20, 100],
  ['/v1/address/{address}/utxos', undefined, 512],
  ['/v1/address/{address}/history', 100, 256],
  ['/v1/cuts/{height}/transactions', undefined, 64],
  ['/v1/cuts/{height}/changes', 1024, 4096],
  ['/v1/transactions/recent', 50, 500],
  ['/v1/blocks/recent', 50, 500],
];

const paths = async (target: Target, path: string): Promise<string> => {
  if (path.includes('{address}')) return path.replace('{address}', needs(target.address, '--address'));
  if (path.includes('{height}')) return path.replace('{height}', String((await someTransaction(target)).height));
  return path;
};

export const CONVENTIONS: readonly Fact[] = factsOf('Conventions of the HTTP API', {
  'documents are JSON and carry `api_version` = 1, on every route without parameters': async ({ api }) => {
    for (const path of PLAIN) await documentAt(`${api}${path}`);
  },
  'amounts are atoms in decimal strings': async ({ api }) => {
    const { api_version: _, finalized_height: __, ...amounts } = await documentAt(`${api}/v1/economics/supply`);
    for (const value of Object.values(amounts)) if (typeof value === 'string') assert.match(value, ATOMS);
    assert.ok(Object.values(amounts).filter((value) => typeof value === 'string').length >= 10);
  },
  'identifiers are 96 lower-case hexadecimal characters': async (target) => {
    assert.match((await someTransaction(target)).id, HEX_96);
    assert.match(await someBlock(target), HEX_96);
  },
  '`finalized_height` names the cut the data belongs to, and grows': async ({ api }) => {
    const height = async () => (await documentAt(`${api}/v1/economics/supply`)).finalized_height as number;
    const first = await height();
    assert.ok(isInteger(first));
    await until(height, (now) => now > first);
  },
  'times are Unix milliseconds in fields that end in `_millis`': async ({ api }) => {
    const [cut] = entriesOf(await documentAt(`${api}/v1/cuts?limit=1`));
    const times = Object.entries(cut ?? {}).filter(([name]) => name.endsWith('_millis'));
    assert.ok(times.length > 0);
    for (const [, value] of times) assert.ok(Math.abs(Number(value) - Date.now()) < 86_400_000, String(value));
  },
  'no key and no account are needed': async ({ api }) => {
    assert.equal((await get(`${api}/v1/chain/head`)).status, 200);
  },
  'the base URL lists the routes, for programs and in a browser': async ({ api }) => {
    const list = await get(`${api}/`);
    const page = await get(`${api}/`, { accept: 'text/html' });
    for (const answer of [list, page])
      for (const path of ['/v1/address/{address}/balance', '/v1/economics/supply', '/health'])
        assert.ok(answer.text.includes(path), path);
    assert.match(page.header('content-type') ?? '', /^text\/html/);
  },
});

export const ENDPOINTS: readonly Fact[] = [
  ...factsOf('Endpoints: public HTTP API', {
    'GET `/health` answers `ok`': async ({ api }) => {
      const answer = await get(`${api}/health`);
      assert.deepEqual([answer.status, answer.text.trim()], [200, 'ok']);
    },
    ...Object.fromEntries(
      PLAIN.map((path) => [
        `GET \`${path.split('?')[0]}\``,
        async ({ api }: Target) => void (await documentAt(`${api}${path}`)),
      ]),
    ),
    ...Object.fromEntries(
      ['balance', 'utxos', 'history'].map((name) => [
        `GET \`/v1/address/{address}/${name}\``,
        async (target: Target) => {
          const address = needs(target.address, '--address');
          const document = await documentAt(`${target.api}/v1/address/${address}/${name}`);
          assert.equal(document.address, address);
        },
      ]),
    ),
    ...Object.fromEntries(
      ['transactions', 'changes'].map((name) => [
        `GET \`/v1/cuts/{height}/${name}\``,
        async (target: Target) => {
          const { height } = await someTransaction(target);
          assert.ok(entriesOf(await documentAt(`${target.api}/v1/cuts/${height}/${name}`)).length > 0);
        },
      ]),
    ),
    ...Object.fromEntries(
      BATCHES.map((path) => [
        `POST \`${path}\`: up to 64 addresses`,
        async (target: Target) => {
          const address = needs(target.address, '--address');
          const send = (count: number) =>
            post(`${target.api}${path}`, batchBody.addresses(path, Array<string>(count).fill(address)));
          const full = await send(64);
          assert.deepEqual([full.status, full.json.api_version], [200, 1]);
          assert.equal((await send(65)).status, 400);
        },
      ]),
    ),
    'POST `/v1/transactions/status`: up to 1,024 transaction IDs': async (target) => {
      const { id } = await someTransaction(target);
      const send = (count: number) =>
        post(`${target.api}/v1/transactions/status`, batchBody.transactions(Array<string>(count).fill(id)));
      assert.equal((await send(1024)).status, 200);
      assert.equal((await send(1025)).status, 400);
    },
    'POST `/v1/proofs/utxos`: up to 8 outpoints': async (target) => {
      const outpoint = { transaction_id: (await someTransaction(target)).id, output_index: 0 };
      const send = (count: number) =>
        post(`${target.api}/v1/proofs/utxos`, batchBody.outpoints(Array<object>(count).fill(outpoint)));
      assert.equal((await send(8)).status, 200);
      assert.equal((await send(9)).status, 400);
    },
    'POST `/v1/transactions`: what is no transaction is refused': async ({ api }) => {
      const answer = await post(`${api}/v1/transactions`, { api_version: 1, wire_hex: '00' });
      assert.equal(answer.status, 400);
    },
    'GET `/v1/transactions/{id}/status`': async (target) => {
      const { id } = await someTransaction(target);
      const status = await documentAt(`${target.api}/v1/transactions/${id}/status`);
      assert.equal(status.transaction_id, id);
    },
    'GET `/v1/blocks/{id}`': async (target) => {
      await documentAt(`${target.api}/v1/blocks/${await someBlock(target)}`);
    },
  }),
  ...factsOf('Endpoints: pages', {
    ...Object.fromEntries(
      PAGES.map(([path, standard, most]) => [
        `\`${path}\`: ${standard === undefined ? '' : `${standard} without a limit, `}at most ${most}`,
        async (target: Target) => {
          const url = `${target.api}${await paths(target, path)}`;
          assert.equal((await get(`${url}?limit=${most}`)).status, 200);
          const over = await get(`${url}?limit=${most + 1}`);
          // Refused or lowered: never more than the maximum.
          if (over.status === 200) assert.ok(entriesOf(over.json).length <= most);
          else assert.equal(over.status, 400);
          const page = entriesOf(await documentAt(url));
          if (standard !== undefined) {
            assert.ok(page.length <= standard, `${page.length} entries`);
            const more = entriesOf(await documentAt(`${url}?limit=${Math.min(most, 2 * standard)}`));
            if (more.length > standard) assert.equal(page.length, standard);
          }
        },
      ]),
    ),
    'the cut list goes on with `next_before`, and the last page has none': async ({ api }) => {
      const first = await documentAt(`${api}/v1/cuts?limit=2`);
      assert.ok(isInteger(first.next_before));
      const second = await documentAt(`${api}/v1/cuts?limit=2&before=${first.next_before}`);
      const heights = [...entriesOf(first), ...entriesOf(second)].map((cut) =>
        Number((cut.cut as Entry)?.height ?? cut.height),
      );
      assert.deepEqual(
        heights,
        heights.toSorted((a, b) => b - a),
      );
      assert.equal(new Set(heights).size, heights.length);
      const last = await documentAt(`${api}/v1/cuts?limit=2&before=1`);
      assert.ok(!('next_before' in last) || last.next_before === null);
    },
    'a list goes on with `next_cursor`, without gaps and repeats, and the last page has none': async (target) => {
      const url = `${target.api}/v1/address/${needs(target.address, '--address')}/history`;
      const listed = (events: Entry[]) => events.map(({ kind, outpoint }) => JSON.stringify([kind, outpoint]));
      const seen: string[] = [];
      let cursor: unknown;
      do {
        const page = await documentAt(
          `${url}?limit=1${cursor === undefined ? '' : `&cursor=${encodeURIComponent(String(cursor))}`}`,
        );
        seen.push(...listed(entriesOf(page)));
        cursor = page.next_cursor;
        assert.ok(cursor === undefined || typeof cursor === 'string');
      } while (cursor !== undefined && seen.length < 10);
      assert.equal(new Set(seen).size, seen.length);
      // Newer events may have come in between.
      const all = listed(entriesOf(await documentAt(`${url}?limit=256`)));
      const first = all.indexOf(seen[0] as string);
      assert.ok(first >= 0, 'the first event is gone');
      assert.deepEqual(all.slice(first, first + seen.length), seen);
      if (cursor === undefined) assert.equal(first + seen.length, all.length);
    },
  }),
];

export const RESOURCES: readonly Fact[] = factsOf('Resources', {
  'address balance document': async (target) => {
    const address = needs(target.address, '--address');
    const document = await documentAt(`${target.api}/v1/address/${address}/balance`);
    assert.match(String(document.balance), ATOMS);
    assert.ok(isInteger(document.utxos) && isInteger(document.indexed_height));
  },
  'address history document, and its entries': async (target) => {
    const document = await documentAt(`${target.api}/v1/address/${needs(target.address, '--address')}/history`);
    assert.ok(isInteger(document.indexed_height));
    const events = document.events as Entry[];
    assert.ok(events.length > 0);
    for (const event of events) {
      assert.ok(isInteger(event.finalized_height));
      assert.match(String(event.amount), ATOMS);
      assert.equal(typeof event.kind, 'string');
      assert.equal(typeof event.source, 'string');
      const { transaction_id: id, output_index: index } = event.outpoint as Entry;
      assert.match(String(id), HEX_96);
      assert.ok(isInteger(index));
    }
  },
  'transaction status document of a finalized transaction': async (target) => {
    const { id } = await someTransaction(target);
    const status = await documentAt(`${target.api}/v1/transactions/${id}/status`);
    assert.equal(status.lifecycle, 'finalized');
    assert.match(String((status.observed_work as Entry).block_id), HEX_96);
    for (const name of ['registered_cut', 'finalized_cut']) assert.ok(isInteger((status[name] as Entry).height));
    assert.equal(status.failure, null);
  },
  'supply document: the fields of the table': async ({ api }) => {
    const supply = await documentAt(`${api}/v1/economics/supply`);
    for (const name of [
      'max_supply',
      'minted',
      'burned',
      'total_supply',
      'circulating_supply',
      'bonded',
      'unbonding',
      'work_reserve',
      'stake_reserve',
      'unscheduled_emission',
    ])
      assert.match(String(supply[name]), ATOMS, name);
  },
  'node sync document': async ({ api }) => {
    const sync = await documentAt(`${api}/v1/node/sync`);
    assert.equal(typeof sync.synced, 'boolean');
    for (const name of ['finalized_height', 'behind_by', 'peers']) assert.ok(isInteger(sync[name]), name);
    assert.ok(sync.best_peer_height === null || isInteger(sync.best_peer_height));
  },
  'node status: `update_required`, `update_announced`': async ({ api }) => {
    const status = await documentAt(`${api}/v1/node/status`);
    assert.deepEqual([typeof status.update_required, typeof status.update_announced], ['boolean', 'boolean']);
  },
  'block document: `reward.state` and the amounts': async (target) => {
    const block = await documentAt(`${target.api}/v1/blocks/${await someBlock(target)}`);
    const { state, ...amounts } = block.reward as Entry;
    assert.equal(typeof state, 'string');
    const named = Object.entries(amounts).filter(([name]) => name.includes('amount'));
    assert.ok(named.length > 0);
    for (const [name, value] of named)
      assert.ok(value === null || (typeof value === 'string' && ATOMS.test(value)), name);
  },
});

export const VERSIONING: readonly Fact[] = factsOf('Versioning', {
  'routes are under `/v1/`: none without it': async ({ api }) => {
    assert.equal((await get(`${api}/chain/head`)).status, 404);
    assert.equal((await get(`${api}/v2/chain/head`)).status, 404);
  },
  'a submission of another `api_version` is refused': async ({ api }) => {
    assert.equal((await post(`${api}/v1/transactions`, { api_version: 2, wire_hex: '00' })).status, 400);
  },
  'the manifest names chain, protocol version, rule set, limits and minimum fee': async ({ api }) => {
    const manifest = await documentAt(`${api}/v1/transactions/manifest`);
    assert.match(String(manifest.chain_id), HEX_96);
    assert.ok(isInteger(manifest.protocol_version) && isInteger(manifest.rule_set));
    assert.ok(Object.entries(manifest).some(([name, value]) => /fee/.test(name) && ATOMS.test(String(value))));
    assert.ok(Object.values(manifest).includes(8), 'a transaction spends at most 8 outputs');
  },
});
