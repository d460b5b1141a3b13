/**
 * The public API under load: rates of the costly reads, their times at half that load while cuts are sealed, and how fast an event
 * reaches thousands of subscribers. `npm run bench -- api small` takes a chain that is made in seconds.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApi } from '../../node/api/api.ts';
import { newIdentity } from '../../node/api/identity.ts';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { FullNode } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { INDEX_NAME } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import { createNode } from '../../node/node.ts';
import { formatAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { developmentKeys, quickHash, searchNonce, silentLog } from '../node/bed.ts';
import { randomOf } from '../random.ts';
import { BENCH_START, benchAddress, benchChain, type ChainSize } from './api-chain.ts';
import type { LoadResult } from './api-load.ts';
import { Load } from './api-load-process.ts';
import { bench } from './harness.ts';

const FULL: ChainSize = { outputs: 1_000_000, cuts: 100_000, addresses: 10_000 };
const SMALL: ChainSize = { outputs: 100_000, cuts: 2_000, addresses: 1_000 };
const SUBSCRIBERS = 5_000;
const EVENTS = 10;
const PLAIN = 'x'.repeat(180);

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

async function transactionIds(node: FullNode, addresses: number, wanted: number): Promise<string[]> {
  const index = new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);
  const ids = new Set<string>();
  for (let i = 0; ids.size < wanted && i < addresses; i++)
    for (const { outpoint } of (await index.unspent(benchAddress(i), undefined, 512)).value)
      ids.add(toHex(outpoint.transactionId));
  return [...ids];
}

export default bench(
  'the public API: rates, times under half the load while cuts are sealed, events to 5,000 subscribers',
  async (b) => {
    const size = b.words.includes('small') ? SMALL : FULL;
    const seconds = b.words.includes('small') ? 2 : 5;
    const made = await benchChain('.data/bench', size, (text) => b.note(text));
    const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
    cpSync(made, directory, { recursive: true });
    const random = randomOf(7);
    let now = BENCH_START + size.cuts * 2_500;
    const node = await createNode(
      { storeDirectory: directory, cutMillis: 0 },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: certifyWith(developmentKeys(1)),
        now: () => now,
        random,
        log: silentLog,
        indexers: [addressIndex],
      },
    );
    const api = await startApi(
      { bind: { host: '127.0.0.1', port: 0 }, version: 'bench', network: 'development' },
      { identity: newIdentity(), now: Date.now, log: silentLog },
    );
    api.serve(node);
    const { port } = api.address;
    b.note(`${node.chain.supply().outputCount} outputs, ${node.chain.head().height} cuts`);

    const address = () => formatAddress(benchAddress(random(size.addresses)), 'development');
    const ids = await transactionIds(node, size.addresses, 60_000);
    const batch = (): string => {
      const from = random(Math.max(1, ids.length - 1024));
      return JSON.stringify({ transaction_ids: ids.slice(from, from + 1024) });
    };
    const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
    const works = {
      balance: many(5_000, () => get(`/v1/address/${address()}/balance`)),
      history: many(2_000, () => get(`/v1/address/${address()}/history`)),
      status: many(20, () => post('/v1/transactions/status', batch())),
    };

    // The yardstick: node:http alone, with an answer of the size of a balance.
    const plain = createServer((_, response) =>
      response.writeHead(200, ['content-length', PLAIN.length]).end(PLAIN, 'latin1'),
    );
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', () => resolve()));
    const plainPort = (plain.address() as AddressInfo).port;

    const load = new Load();
    const cut = async (): Promise<void> => {
      now += 2_500;
      const template = node.template({ payout: developmentKey('miner').address, maxTransactions: 0 });
      await node.submitBlock(searchNonce(template.header, template.target), template.body);
      await node.seal();
    };
    const cost: Record<string, number> = {};
    for (const [name, requests] of [['plain', [get('/')]] as const, ...Object.entries(works)]) {
      const connections = name === 'status' ? 8 : 32;
      const order = { kind: 'requests', connections, perSecond: 0, requests } as const;
      const to = name === 'plain' ? plainPort : port;
      await load.run({ ...order, port: to, seconds: 1 });
      const before = process.cpuUsage();
      const result = await load.run({ ...order, port: to, seconds });
      const { user, system } = process.cpuUsage(before);
      if (result.failed > 0) throw new Error(`${result.failed} requests for ${name} failed`);
      // What it costs one core says more than a rate where other programs want the cores too.
      cost[name] = (user + system) / result.answered;
      const against = { ratio: cost[name] / (cost.plain as number), yardstick: 'a plain node:http answer' };
      b.figure(name, result.answered / result.seconds, 'requests/s');
      b.figure(`${name}-cpu`, cost[name], 'us of the node', name === 'plain' ? undefined : against);
    }
    b.note('half the rates that were asked for, with a cut every 500 ms:');
    for (const [name, perSecond] of [
      ['balance', 4_000],
      ['history', 1_500],
      ['status', 75],
    ] as const) {
      let cutting = Promise.resolve();
      const timer = setInterval(() => {
        cutting = cutting.then(cut);
      }, 500);
      const requests = works[name];
      const result = await load.run({ kind: 'requests', port, connections: 64, perSecond, requests, seconds });
      clearInterval(timer);
      await cutting;
      b.figure(`${name}-p50`, result.p50, 'ms');
      b.figure(`${name}-p99`, result.p99, 'ms');
      b.figure(`${name}-served`, result.answered / result.seconds, 'requests/s');
    }

    load.order({ kind: 'subscribers', port, count: SUBSCRIBERS, events: EVENTS });
    await load.line();
    const sent: number[] = [];
    const stop = node.on('cut', () => sent.push(performance.timeOrigin + performance.now()));
    for (let i = 0; i < EVENTS; i++) {
      await cut();
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
    stop();
    const { arrivals = [] } = JSON.parse(await load.line()) as LoadResult;
    const waits = arrivals.flatMap((times, i) => times.map((time) => time - (sent[i] as number))).sort((a, c) => a - c);
    b.figure('event-p50', waits[Math.floor(waits.length * 0.5)] as number, 'ms');
    b.figure('event-p99', waits[Math.floor(waits.length * 0.99)] as number, 'ms');
    load.close();
    plain.close();
    await api.close();
    await node.close();
    rmSync(directory, { recursive: true, force: true });
  },
);
