/**
 * What one client's allowance buys of a public node's main thread: for each dear route the allowance is spent at once, and the longest
 * stretch of the thread's CPU time between two turns of its event loop is measured. CPU time, because other programs want the core too.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApi } from '../../node/api/api.ts';
import { PUBLIC_LIMITS } from '../../node/api/api-limits.ts';
import { newIdentity } from '../../node/api/identity.ts';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { FullNode } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { INDEX_NAME } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import { createNode } from '../../node/node.ts';
import { formatAddress } from '../../protocol/address.ts';
import { callCost, ROUTES, type RouteName } from '../../protocol/api/routes.ts';
import { toHex } from '../../protocol/bytes.ts';
import { encodeBody, MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { developmentKeys, payment, quickHash, searchNonce, silentLog } from '../node/bed.ts';
import { randomOf } from '../random.ts';
import { BENCH_START, benchAddress, benchChain, type ChainSize } from './api-chain.ts';
import { Load } from './api-load-process.ts';
import { bench } from './harness.ts';

const SIZE: ChainSize = { outputs: 100_000, cuts: 600, addresses: 64 };
/** Cuts with a block each, for lists of blocks. */
const MINED = 520;
const MINER = developmentKey('miner').address;

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const post = (path: string, document: unknown): string => {
  const body = JSON.stringify(document);
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
};

/** The largest body that a block can have; the chain of the benchmarks keeps none. */
function fullBody(node: FullNode): Uint8Array {
  const outpoint = { transactionId: new Uint8Array(48), outputIndex: 0 };
  const wire = payment(node.chain, [{ outpoint, address: MINER, amount: 1_000_000n, source: 'regular' }], []);
  const copies = Math.floor((MAX_BODY_BYTES - 1_000) / (wire.length + 4));
  return encodeBody({
    payout: MINER,
    extranonce: new Uint8Array(8),
    parents: [],
    transactions: Array<Uint8Array>(copies).fill(wire),
  });
}

/** The node, but every block has that body. */
const withBodies = (node: FullNode, body: Uint8Array): FullNode =>
  new Proxy(node, {
    get(target, name) {
      if (name === 'blockBody') return () => body;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

/** The longest and the whole CPU time of this thread while something runs. */
async function stretches<T>(work: () => Promise<T>): Promise<{ value: T; longest: number; all: number }> {
  const cpu = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let [isOver, longest] = [false, 0];
  const began = cpu();
  let last = began;
  // Timers run once a turn, so nobody else gets a turn within what is measured.
  const look = (): void => {
    const now = cpu();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setTimeout(look, 0);
  };
  look();
  const value = await work();
  isOver = true;
  return { value, longest, all: cpu() - began };
}

export default bench('what one client can have of a public node’s main thread with one burst', async (b) => {
  const made = await benchChain('.data/bench', SIZE, (text) => b.note(text));
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  cpSync(made, directory, { recursive: true });
  let now = BENCH_START + SIZE.cuts * 2_500;
  const node = await createNode(
    { storeDirectory: directory, cutMillis: 0 },
    {
      verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
      certify: certifyWith(developmentKeys(1)),
      now: () => now,
      random: randomOf(7),
      log: silentLog,
      indexers: [addressIndex],
    },
  );
  for (let i = 0; i < MINED; i++) {
    now += 2_500;
    const template = node.template({ payout: MINER, maxTransactions: 0 });
    await node.submitBlock(searchNonce(template.header, template.target), template.body);
    await node.seal();
  }
  const index = new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);
  const addresses = Array.from({ length: SIZE.addresses }, (_, i) => formatAddress(benchAddress(i), 'development'));
  const [first] = addresses as [string];
  const unspent = await index.unspent(benchAddress(0), undefined, 512);
  const ids = new Set<string>();
  for (let i = 0; ids.size < 1_024; i++)
    for (const { outpoint } of (await index.unspent(benchAddress(i), undefined, 512)).value)
      ids.add(toHex(outpoint.transactionId));
  const [block] = (await index.recentBlocks(1)).value as [Uint8Array];
  const outpoints = unspent.value.slice(0, 8).map(({ outpoint }) => ({
    transaction_id: toHex(outpoint.transactionId),
    output_index: outpoint.outputIndex,
  }));

  const requests: readonly (readonly [RouteName, number | undefined, string])[] = [
    ['addressUtxos', 512, get(`/v1/address/${first}/utxos?limit=512`)],
    ['addressHistory', 256, get(`/v1/address/${first}/history?limit=256`)],
    ['cuts', 100, get('/v1/cuts?limit=100')],
    ['cutTransactions', 64, get('/v1/cuts/3/transactions?limit=64')],
    ['cutChanges', 1_024, get('/v1/cuts/3/changes?limit=1024')],
    ['cutChanges', 4_096, get('/v1/cuts/3/changes?limit=4096')],
    ['recentTransactions', 500, get('/v1/transactions/recent?limit=500')],
    ['recentBlocks', 500, get('/v1/blocks/recent?limit=500')],
    ['addressBalances', undefined, post('/v1/address/balances', { addresses })],
    ['addressesUtxos', 512, post('/v1/address/utxos', { addresses, limit: 512 })],
    ['addressChanges', 4_096, post('/v1/address/changes', { addresses, after_height: 0, limit: 4_096 })],
    ['registeredKeys', undefined, post('/v1/keys/registered', { addresses })],
    ['transactionStatuses', undefined, post('/v1/transactions/status', { transaction_ids: [...ids].slice(0, 1_024) })],
    ['utxoProofs', undefined, post('/v1/proofs/utxos', { outpoints })],
    ['block', undefined, get(`/v1/blocks/${toHex(block)}`)],
    ['addressBalance', undefined, get(`/v1/address/${first}/balance`)],
    ['chainHead', undefined, get('/v1/chain/head')],
  ];
  const load = new Load();
  const wanted = b.words.filter((word) => word in ROUTES);
  const serving = withBodies(node, fullBody(node));
  const rows = requests.map(([name, limit, request]) => ({ name, limit, request, times: 1 }));
  // Far beyond the allowance: nearly all are refused.
  rows.push({ name: 'chainHead', limit: undefined, request: get('/v1/chain/head'), times: 8 });
  for (const { name, limit, request, times } of rows) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    // A new one each time: the allowance is whole.
    const api = await startApi(
      { bind: { host: '127.0.0.1', port: 0 }, version: 'bench', network: 'development', public: true },
      { identity: newIdentity(), now: Date.now, log: silentLog },
    );
    api.serve(serving);
    const { port } = api.address;
    const count = times * Math.floor(PUBLIC_LIMITS.rate.burst / callCost(ROUTES[name], limit));
    const warm = { kind: 'burst', port, connections: 1, count: 1, requests: [request] } as const;
    await load.run(warm);
    const { value, longest, all } = await stretches(() =>
      load.run({ ...warm, connections: Math.min(256, Math.ceil(count / 8)), count }),
    );
    const title = `${name}${limit === undefined ? '' : `-${limit}`}${times === 1 ? '' : `-x${times}`}`;
    b.note(
      `${title}: ${count} at once, ${value.answered} served, ${value.failed} refused, in ${value.seconds.toFixed(2)} s`,
    );
    b.figure(`${title}-longest`, longest, 'ms');
    b.figure(`${title}-all`, all, 'ms');
    await api.close();
  }
  load.close();
  await node.close();
  rmSync(directory, { recursive: true, force: true });
});
