/** A real node with its mining listener on a free port, its clock and cuts in the test's hands, behind a LyingNode. */
import { onTestFinished } from 'vitest';
import { HttpNode } from '../../bridge/nodes/node-http.ts';
import { NodeUpstream, type TemplateSet, UPSTREAM_DEFAULTS } from '../../bridge/nodes/upstream.ts';
import { chainRates, nodeSync } from '../../node/api/chain-routes.ts';
import type { NodeIdentity } from '../../node/api/identity.ts';
import { CutFeed, CutReader } from '../../node/events.ts';
import type { AnchorPolicy } from '../../node/mining/anchor-choice.ts';
import { listenForMining } from '../../node/mining/listener.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { Pin } from '../../protocol/api/pinned-node.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import { Bed, type BedSettings, silentLog } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { LyingNode } from './lying-node.ts';

export type MiningBed = { readonly bed: Bed; readonly url: string; readonly liar: LyingNode };

export async function startMiningBed(settings: BedSettings = {}, identity?: NodeIdentity): Promise<MiningBed> {
  const bed = await Bed.open(settings);
  const feed = new CutFeed({}, { node: bed.node });
  const listener = await listenForMining(
    { bind: { host: '127.0.0.1', port: 0 } },
    {
      node: bed.node,
      ...(identity === undefined ? {} : { identity }),
      log: silentLog,
      syncDocument: () => nodeSync(bed.node),
      ratesDocument: () => chainRates(bed.node),
      follow: (socket, afterHeight) => void new CutReader(feed, socket, afterHeight),
    },
  );
  const url = `http://127.0.0.1:${listener.address.port}`;
  const liar = await LyingNode.start(url);
  onTestFinished(async () => {
    await liar.close();
    feed.close();
    await listener.close();
    await bed.close();
  });
  return { bed, url, liar };
}

export const httpNode = (url: string, timeoutMillis = 10_000, pin?: Pin, anchors: AnchorPolicy = 'newest'): HttpNode =>
  new HttpNode(
    {
      url,
      payout: formatAddress(new Uint8Array(49), 'development'),
      maxTransactions: 65_536,
      extranonce: '00'.repeat(40),
      anchors,
      timeoutMillis,
      pin,
    },
    // Reconnects come at once: what is under test is what follows from an answer, not the wait for the next.
    { ...nodeTransport(), sleep: (millis) => new Promise((resolve) => setTimeout(resolve, Math.min(millis, 50))) },
  );

/** Errors that would have ended a program. */
export function fatalErrors(): unknown[] {
  const errors: unknown[] = [];
  const note = (error: unknown) => void errors.push(error);
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
  onTestFinished(() => {
    process.off('uncaughtException', note);
    process.off('unhandledRejection', note);
  });
  return errors;
}

/** Follows nodes as a bridge does; what it would hand to listeners is kept. */
export function followNodes(bed: Bed, urls: readonly string[], timeoutMillis?: number, pin?: Pin) {
  const sets: TemplateSet[] = [];
  const cuts: number[] = [];
  const states = { healthy: false };
  const startMillis = performance.now();
  const upstream = new NodeUpstream(
    { network: NETWORKS.development, ...UPSTREAM_DEFAULTS, retryMillis: 20, refreshMillis: 20, feeFactor: 0 },
    {
      sources: urls.map((url) => httpNode(url, timeoutMillis, pin)),
      now: () => bed.now + performance.now() - startMillis,
      log: quietLog,
    },
  );
  upstream.start({
    templates: (set) => sets.push(set),
    told: () => {},
    cut: ({ height }) => cuts.push(height),
    healthy: (isHealthy) => {
      states.healthy = isHealthy;
    },
  });
  onTestFinished(() => upstream.close());
  return { upstream, sets, cuts, states };
}
