/** The document of `GET /v1/stats` (docs/bridge.md). Amounts and works are decimal text: they pass 2^53. */
import { formatAddress } from '../protocol/address.ts';
import { toHex } from '../protocol/bytes.ts';
import type { NetworkName } from '../protocol/network.ts';
import { sharedInFlight } from '../runtime/clients/in-flight.ts';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import { listenSmall, type SmallListenerDependencies } from '../runtime/door/small-listener.ts';
import { type Counters, hashRateOf } from './shares/counters.ts';
import type { BlockEntry } from './shares/found-blocks.ts';
import type { StratumFigures, StratumServer } from './stratum-server.ts';

const MAX_WORKERS = 1_000;
const MAX_BLOCKS = 100;

/** For programs of the operator. Web pages are not served. */
export function listenForStats(
  address: ListenAddress,
  { stats, ...dependencies }: SmallListenerDependencies & { readonly stats: () => Promise<object> },
) {
  const gather = sharedInFlight(stats);
  const answer = () =>
    gather().then(
      (body) => ({ status: 200, body }),
      () => ({ status: 503, body: { error: 'the statistics could not be read' } }),
    );
  const what = { name: 'statistics', what: 'statistics', offers: 'only /v1/stats is here', isJson: true };
  return listenSmall(address, { ...what, routes: { '/v1/stats': { answer } } }, dependencies);
}

export async function statsDocument(
  server: StratumServer,
  counters: Counters,
  about: {
    readonly network: NetworkName;
    readonly version: string;
    readonly startedMillis: number;
    readonly nowMillis: number;
  },
): Promise<object> {
  const figures = await server.figures();
  return {
    api_version: 1,
    version: about.version,
    network: about.network,
    boot_id: toHex(figures.bootId),
    uptime_millis: Math.floor(about.nowMillis - about.startedMillis),
    ready: figures.ready,
    finalized_height: figures.headHeight,
    nodes: figures.nodes,
    connections: connectionsDocument(figures),
    shares: sharesDocument(counters),
    anchors: {
      newest: figures.templates.anchors.newest,
      older: figures.templates.anchors.older,
      mean_age: figures.templates.anchors.meanAge,
    },
    blocks: { ...figures.blocks, paidAtoms: undefined, paid_atoms: figures.blocks.paidAtoms.toString() },
    found: server.blocks(MAX_BLOCKS).map((entry) => blockDocument(entry, about.network)),
    workers: workerDocuments(counters, about),
    worker_count: counters.workerCount,
    bans: banDocuments(server),
  };
}

function blockDocument({ id, account, worker, anchorHeight, atMillis, fate }: BlockEntry, network: NetworkName) {
  return {
    block_id: id,
    address: formatAddress(account, network),
    worker,
    anchor_height: anchorHeight,
    found_at_millis: atMillis,
    state: fate.state,
    ...(fate.state === 'paid'
      ? {
          paid_height: fate.height,
          transaction_id: fate.transactionId,
          output_index: fate.outputIndex,
          amount: fate.amount.toString(),
        }
      : {}),
    ...(fate.state === 'refused' ? { reason: fate.reason } : {}),
  };
}

export function connectionsDocument({ listeners }: Pick<StratumFigures, 'listeners'>) {
  const sum = (key: 'connections' | 'mining'): number => listeners.reduce((all, listener) => all + listener[key], 0);
  return { all: sum('connections'), mining: sum('mining') };
}

export const sharesDocument = ({ totals: { work, ...counts } }: Counters) => ({ ...counts, work: work.toString() });

export const workerDocuments = (
  counters: Counters,
  { network, nowMillis }: { readonly network: NetworkName; readonly nowMillis: number },
) =>
  counters.list(MAX_WORKERS).map((worker) => ({
    address: formatAddress(worker.account, network),
    worker: worker.worker,
    agent: worker.agent,
    connections: worker.connections,
    accepted: worker.accepted,
    stale: worker.stale,
    rejected: worker.rejected,
    work: worker.work.toString(),
    hash_rate: hashRateOf(worker, nowMillis).toString(),
    blocks: worker.blocks,
    last_share_millis: worker.lastShareMillis,
  }));

export const banDocuments = (server: Pick<StratumServer, 'bans'>) =>
  server.bans().map(({ key, untilMillis }) => ({ address: key, until_millis: Math.round(untilMillis) }));
