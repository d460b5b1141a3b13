/** The whole pool as svc-pool assembles it, in this process: at a node of this process, whose cuts are made by hand, with a PostgreSQL of its own, and a wallet that is away. */
import { join } from 'node:path';
import { afterAll, expect, onTestFinished } from 'vitest';
import { createVerifier, type Verifier } from '../../kernels/verifier.ts';
import { chainRates, nodeSync } from '../../node/api/chain-routes.ts';
import { CutFeed, CutReader } from '../../node/events.ts';
import { listenForMining } from '../../node/mining/listener.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { poolOptions } from '../../pool/options.ts';
import { createPool, type Pool } from '../../pool/pool.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { ApiBed, identity } from '../api/api-bed.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { startDatabases } from './ready-cluster.ts';

const ANY = '127.0.0.1:0';
/** No share of a test is a block. */
const BLOCK_WORK = 1n << 40n;

/** One for all pools of a file: making its cache takes longer than a start. */
let shared: Verifier | undefined;
afterAll(async () => {
  await shared?.close();
  shared = undefined;
});

export type RunningPool = Pool & {
  readonly dataDir: string;
  port(service: 'pplns' | 'solo', kind?: 'tcp' | 'ws'): number;
  /** In the order of an orderly end. */
  stop(): Promise<void>;
};

export type PoolBed = {
  readonly sql: Sql;
  /** Makes a cut, at which every connection gets a job. */
  cut(): Promise<void>;
  start(dataDir?: string): Promise<RunningPool>;
};

/** A node with both listeners that a pool asks. */
export async function openPoolNode(blockWork = BLOCK_WORK) {
  const { bed, base } = await ApiBed.forTest({ bed: { genesis: { initialWork: blockWork, minimumWork: blockWork } } });
  bed.now = Date.now();
  const feed = new CutFeed({}, { node: bed.node });
  const listener = await listenForMining(
    { bind: { host: '127.0.0.1', port: 0 } },
    {
      node: bed.node,
      identity,
      log: quietLog,
      syncDocument: () => nodeSync(bed.node),
      ratesDocument: () => chainRates(bed.node),
      follow: (socket, afterHeight) => void new CutReader(feed, socket, afterHeight),
    },
  );
  onTestFinished(async () => {
    feed.close();
    await listener.close();
  });
  return { bed, api: base, mining: `http://127.0.0.1:${listener.address.port}` };
}

export async function openPoolBed(
  words: readonly string[] = [],
  { wallet = 'http://127.0.0.1:9', log = quietLog }: { readonly wallet?: string; readonly log?: Logger } = {},
): Promise<PoolBed> {
  const node = await openPoolNode();
  const databases = await startDatabases();
  onTestFinished(() => databases.stop());
  const database = await databases.create();
  const sql = connectDatabase(database, { max: 2 });
  onTestFinished(() => sql.end({ timeout: 1 }));

  const start = async (dataDir = join(temporaryDirectory(), 'pool')): Promise<RunningPool> => {
    const parsed = parseCommandLine(
      { name: 'test', summary: '', options: poolOptions },
      [
        ...['--data-dir', dataDir, '--database', database],
        ...['--node', node.mining, '--node-api', node.api],
        ...['--pplns-listen', ANY, '--pplns-listen-ws', ANY, '--solo-listen', ANY, '--solo-listen-ws', 'off'],
        ...['--web-bind', ANY, '--threads', '0', '--min-work', '1'],
        ...['--wallet', wallet, '--wallet-token-file', `${dataDir}.token`, '--pool-address', addressOf(99)],
        ...words,
      ],
      () => '',
    );
    if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
    shared ??= createVerifier({ network: NETWORKS.development, mode: 'light', threads: 1 });
    const stops: (() => Promise<void> | void)[] = [];
    const stop = async () => {
      for (const end of stops.splice(0).reverse()) await end();
    };
    onTestFinished(stop);
    const pool = await createPool(parsed.values, {
      log,
      version: 'test',
      started: (_name, end) => void stops.push(end),
      fault: (reason) => expect.fail(reason),
      verifier: shared,
    });
    await until(async () => (await pool.stratum.figures()).ready);
    const port = (service: string, kind = 'tcp') =>
      pool.stratum.addresses.find((each) => each.service === service && each.kind === kind)?.port ?? 0;
    return { ...pool, dataDir, port, stop };
  };
  return { sql, cut: async () => void (await node.bed.seal()), start };
}
