/**
 * Every door of every program in one process, to be attacked from another: node API, mining listener, wallet daemon, pool web,
 * stratum (TCP, TLS and WebSocket), statistics, metrics and the miner's API. Says over IPC where they are, and when asked how many
 * sockets it holds, how much memory, which errors it logged, and how many clients a defect ended.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NodeUpstream, UPSTREAM_DEFAULTS } from '../../bridge/nodes/upstream.ts';
import { LIMIT_DEFAULTS } from '../../bridge/options.ts';
import { createStratumServer } from '../../bridge/server.ts';
import { listenForStats } from '../../bridge/stats.ts';
import type { Verifier } from '../../kernels/verifier.ts';
import { listenForApi } from '../../miner/api.ts';
import { startApi } from '../../node/api/api.ts';
import { chainRates, nodeSync } from '../../node/api/chain-routes.ts';
import { newIdentity } from '../../node/api/identity.ts';
import { NO_RATE_LIMIT } from '../../node/api/rate-limit.ts';
import { CutFeed, CutReader } from '../../node/events.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { listenForMining } from '../../node/mining/listener.ts';
import { OperatorToken } from '../../pool/api/operator/operator-token.ts';
import { LiveHub } from '../../pool/api/public/live.ts';
import { startWeb } from '../../pool/api/web.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import { giveBackIdleMemory } from '../../runtime/idle-memory.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../../runtime/metrics/metrics-listener.ts';
import { WalletServer } from '../../wallet/rpc/server.ts';
import { Wallet } from '../../wallet/wallet.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { Bed, quickHash } from '../node/bed.ts';
import { FakeNode } from '../wallet/fake-node.ts';
import type { DoorName, Figures } from './doors-fixture.ts';

export const WALLET_TOKEN = 'test-token-of-more-than-32-characters';

const directory = mkdtempSync(join(tmpdir(), 'svc-doors-'));
const errors: string[] = [];
const log = createLogger(
  'doors',
  { filter: readLevelFilter('error'), format: 'text' },
  {
    sink: { write: (line) => void errors.push(line), flush: () => undefined, close: () => undefined },
    now: Date.now,
  },
);
// As every program does.
giveBackIdleMemory();
const bind = { host: '127.0.0.1', port: 0 };

async function nodeDoors(): Promise<Partial<Record<DoorName, number>>> {
  const bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  await bed.seal(2);
  const now = () => bed.now;
  const api = await startApi(
    { bind, version: '0', network: 'development' },
    { identity: newIdentity(), now, log: log.child('api') },
  );
  api.serve(bed.node);
  const feed = new CutFeed({}, { node: bed.node });
  const mining = await listenForMining(
    { bind },
    {
      node: bed.node,
      log: log.child('mining'),
      syncDocument: () => nodeSync(bed.node),
      ratesDocument: () => chainRates(bed.node),
      follow: (socket, afterHeight) => void new CutReader(feed, socket, afterHeight),
    },
  );
  process.on('exit', () => rmSync(bed.directory, { recursive: true, force: true }));
  return { api: api.address.port, mining: mining.address.port };
}

async function walletDoor(): Promise<Partial<Record<DoorName, number>>> {
  let counter = 0;
  const wallet = await Wallet.open(
    { entropy: new Uint8Array(createHash('sha256').update('doors').digest()), passphrase: '' },
    { network: 'development', stateDirectory: join(directory, 'wallet'), answerMillis: 200 },
    {
      client: new FakeNode().client,
      log: log.child('wallet'),
      now: Date.now,
      randomBytes: (length) =>
        new Uint8Array(createHash('shake256', { outputLength: length }).update(`${counter++}`).digest()),
      fault: (error) => {
        throw error;
      },
    },
  );
  const server = new WalletServer(wallet, { listen: bind, allowRemote: false, token: WALLET_TOKEN });
  return { wallet: (await server.start()).port };
}

async function stratumDoors(): Promise<Partial<Record<DoorName, number>>> {
  const hash = async (_epoch: number, header: Uint8Array) => quickHash(header);
  const verifier: Verifier = {
    mode: 'light',
    queued: 0,
    epochs: [0],
    prepare: async () => undefined,
    hash,
    hashMany: (epoch, headers) => Promise.all(headers.map((header) => hash(epoch, header))),
    share: () => {
      throw new Error('there are no threads here');
    },
    close: async () => undefined,
  };
  const upstream = new NodeUpstream(
    { network: NETWORKS.development, ...UPSTREAM_DEFAULTS },
    { sources: [new TemplateSource()], now: Date.now, log: log.child('upstream') },
  );
  const sink = {
    accepting: true,
    own: async () => undefined,
    shares: async () => undefined,
    refused: () => undefined,
    block: async () => undefined,
    blockFate: async () => undefined,
    worker: () => undefined,
  };
  const server = await createStratumServer(
    {
      network: NETWORKS.development,
      server: 'test/1.0',
      services: [{ name: 'bridge', listen: bind, listenWs: bind, pool: null, tag: 'miner' }],
      threads: 0,
      // Shorter than the default, so that what is abandoned in the middle is gone within a test.
      limits: { ...LIMIT_DEFAULTS, loginMillis: 5_000 },
      wsOrigins: [],
      proxies: ['127.0.0.2/32'],
      allow: [],
      certificate: TEST_CERTIFICATE,
    },
    { upstream, sink, verifier, log: log.child('stratum') },
  );
  const portOf = (kind: 'tcp' | 'ws') => server.addresses.find((address) => address.kind === kind)?.port ?? 0;
  return { stratum: portOf('tcp'), stratumWs: portOf('ws') };
}

async function webDoor(): Promise<Partial<Record<DoorName, number>>> {
  writeFileSync(join(directory, 'index.html'), '<!doctype html><title>pool</title>');
  const token = new OperatorToken(join(directory, 'token'), { log: log.child('web') });
  await token.ensure();
  const live = new LiveHub({}, { first: () => undefined, log: log.child('live') });
  const web = await startWeb(
    {
      listen: bind,
      prefix: '',
      proxies: [],
      dashboard: directory,
      title: 'doors',
      version: '0',
      metrics: true,
      rate: NO_RATE_LIMIT,
    },
    {
      routes: [],
      token,
      metrics: new Metrics('svc_pool'),
      log: log.child('web'),
      now: Date.now,
      ready: () => true,
      live: (request, socket, head, client) => live.upgrade(request, socket, head, client),
    },
  );
  return { web: web.address.port };
}

async function smallDoors(): Promise<Partial<Record<DoorName, number>>> {
  const stats = await listenForStats(bind, { stats: async () => ({ shares: 0 }), log: log.child('stats') });
  const metrics = await listenForMetrics(bind, { metrics: new Metrics('svc_pool'), log: log.child('metrics') });
  const actions = { stats: () => ({ state: 'mining' }), pause: () => undefined, resume: () => undefined };
  const miner = await listenForApi(bind, 'token', { actions, log: log.child('miner') });
  return { stats: stats.address.port, metrics: metrics.address.port, miner: miner.address.port };
}

const ports = Object.assign(
  {},
  ...(await Promise.all([nodeDoors(), walletDoor(), stratumDoors(), webDoor(), smallDoors()])),
) as Record<DoorName, number>;

process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
process.on('disconnect', () => process.exit(0));
process.on('message', (word) => {
  // Twice: buffers that the first finds are given back by a background thread, for which the second waits.
  for (let i = 0; i < 2 && word === 'collect'; i++) globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  const figures: Figures = { heap: heapUsed + external, errors: errors.splice(0), faults: clientFaults.take() };
  process.send?.(figures);
});
process.send?.(ports);
