/** The pool's node: those named by --node, or one embedded in this process with its API on a loopback port. */
import { join } from 'node:path';
import { EmbeddedNode } from '../bridge/node-embedded.ts';
import { HttpNode } from '../bridge/node-http.ts';
import type { NodeSource } from '../bridge/upstream.ts';
import { startApi } from '../node/api/api.ts';
import { loadIdentity } from '../node/api/identity.ts';
import { runDaemon } from '../node/daemon.ts';
import { runOptions } from '../node/node-options.ts';
import { formatAddress } from '../protocol/address.ts';
import { toHex } from '../protocol/bytes.ts';
import { MAX_EXTRANONCE } from '../protocol/tag.ts';
import { steadyMillis } from '../runtime/clock.ts';
import { parseCommandLine } from '../runtime/command-line/command-line.ts';
import { pinOf } from '../runtime/node-identity.ts';
import { nodeTransport } from '../runtime/node-transport.ts';
import { Shutdown } from '../runtime/shutdown.ts';
import type { PoolValues } from './options.ts';
import type { PoolDependencies } from './pool-dependencies.ts';

const MAX_TEMPLATE_TRANSACTIONS = 65_536;
const NODE_TIMEOUT_MILLIS = 10_000;
const STOP_MILLIS = 20_000;
/** Stands in templates until a connection's own is put in: nobody's address, and the longest extranonce. */
const PLACEHOLDER_PAYOUT = new Uint8Array(49);
const PLACEHOLDER_EXTRANONCE = new Uint8Array(MAX_EXTRANONCE);

export type PoolNode = {
  readonly sources: readonly NodeSource[];
  readonly apiUrl: string;
  /** Public APIs of other nodes. */
  readonly otherApis: readonly string[];
  /** It runs in this process: its word is the pool's own. */
  readonly isEmbedded: boolean;
};

export async function openPoolNode(values: PoolValues, dependencies: PoolDependencies): Promise<PoolNode> {
  if (values.node.length > 0)
    return {
      apiUrl: values.nodeApi[0] as string,
      otherApis: values.nodeApi.slice(1),
      isEmbedded: false,
      sources: values.node.map(
        (url) =>
          new HttpNode(
            {
              url,
              payout: formatAddress(PLACEHOLDER_PAYOUT, values.network),
              maxTransactions: MAX_TEMPLATE_TRANSACTIONS,
              extranonce: toHex(PLACEHOLDER_EXTRANONCE),
              timeoutMillis: NODE_TIMEOUT_MILLIS,
              pin: pinOf(values.nodeIdentity),
            },
            nodeTransport(),
          ),
      ),
    };
  const { log, started, version, fault } = dependencies;
  const directory = join(values.dataDir, 'node');
  const parsedWords = parseCommandLine(
    { name: 'node', summary: '', options: runOptions },
    [
      ...['--network', values.network, '--data-dir', directory, '--pow-mode', values.powMode],
      ...['--api-bind', 'off', '--mining-bind', 'off'],
    ],
    () => '',
  );
  if (parsedWords.kind !== 'run') throw new Error('the options of the embedded node are wrong');
  // The node stops as one part of the pool, in its turn: no signals of its own.
  const quiet = { on: () => process, off: () => process, exit: process.exit } as unknown as NodeJS.Process;
  const shutdown = new Shutdown(
    { limitMs: STOP_MILLIS },
    { log: log.child('node'), process: quiet, now: steadyMillis },
  );
  started('node', async () => {
    shutdown.request('the pool stops');
    await shutdown.done;
  });
  const node = await runDaemon(parsedWords.values, { log: log.child('node'), shutdown, version });
  node.on('fault', (error) => fault(`node: ${error.message}`));
  const api = await startApi(
    { bind: { host: '127.0.0.1', port: 0 }, version, network: values.network },
    { identity: await loadIdentity(directory), now: steadyMillis, log: log.child('node.api') },
  );
  started("the node's API", () => api.close());
  api.serve(node);
  return {
    apiUrl: `http://127.0.0.1:${api.address.port}`,
    otherApis: [],
    isEmbedded: true,
    sources: [
      new EmbeddedNode(
        {
          payout: PLACEHOLDER_PAYOUT,
          maxTransactions: MAX_TEMPLATE_TRANSACTIONS,
          extranonce: PLACEHOLDER_EXTRANONCE,
        },
        node,
      ),
    ],
  };
}
