/** A stratum server on free ports of this machine, with templates from a TemplateSource and the real verifier. */
import { afterAll, onTestFinished } from 'vitest';
import { type NodeSource, NodeUpstream, UPSTREAM_DEFAULTS } from '../../bridge/nodes/upstream.ts';
import { LIMIT_DEFAULTS, type StratumLimits } from '../../bridge/options.ts';
import { createStratumServer } from '../../bridge/server.ts';
import type { StratumService } from '../../bridge/service.ts';
import type { SessionShelf } from '../../bridge/session/session-shelf.ts';
import type {
  AcceptedShare,
  BlockFate,
  FoundBlock,
  Ownership,
  RefusedShare,
  ShareSink,
  WorkerEvent,
} from '../../bridge/shares/sink.ts';
import type { StratumServer, StratumServerOptions } from '../../bridge/stratum-server.ts';
import { createVerifier, type Verifier } from '../../kernels/verifier.ts';
import type { AnchorPolicy } from '../../node/mining/anchor-choice.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { quietLog } from '../quiet-log.ts';
import { TemplateSource } from './template-source.ts';

/** Remembers everything; can be told to hold or refuse. */
export class RecordingSink implements ShareSink {
  accepting = true;
  readonly owned: Ownership[] = [];
  readonly accepted: AcceptedShare[] = [];
  readonly rejected: RefusedShare[] = [];
  readonly blocks: FoundBlock[] = [];
  readonly fates: { id: string; fate: BlockFate }[] = [];
  readonly events: WorkerEvent[] = [];
  hold: Promise<void> = Promise.resolve();
  /** Shares that wait for `hold`. */
  held = 0;

  async own(ownerships: readonly Ownership[]): Promise<void> {
    await this.hold;
    this.owned.push(...ownerships);
  }
  async shares(shares: readonly AcceptedShare[]): Promise<void> {
    this.held += shares.length;
    await this.hold;
    this.held -= shares.length;
    this.accepted.push(...shares);
  }
  refused(shares: readonly RefusedShare[]): void {
    this.rejected.push(...shares);
  }
  async block(block: FoundBlock): Promise<void> {
    this.blocks.push(block);
  }
  async blockFate(blockId: Bytes, fate: BlockFate): Promise<void> {
    this.fates.push({ id: toHex(blockId), fate });
  }
  worker(event: WorkerEvent): void {
    this.events.push(event);
  }
}

/** One for all tests of a file: building its dataset takes longer than most of them. */
let shared: Verifier | undefined;
afterAll(async () => {
  await shared?.close();
  shared = undefined;
});

export const EASY: StratumLimits = {
  ...LIMIT_DEFAULTS,
  drainMillis: 300,
  vardiff: { ...LIMIT_DEFAULTS.vardiff, startWork: 4n, minWork: 1n },
};

export const BRIDGE: StratumService = {
  name: 'bridge',
  listen: { host: '127.0.0.1', port: 0 },
  listenWs: { host: '127.0.0.1', port: 0 },
  pool: null,
  tag: 'miner',
};

export type BedOptions = Partial<Omit<StratumServerOptions, 'network'>> & {
  readonly sources?: readonly NodeSource[];
  readonly nowMillis?: () => number;
  /** The clock of the server itself. */
  readonly serverNow?: () => number;
  readonly verifier?: Verifier;
  readonly blockWork?: bigint;
  readonly anchors?: AnchorPolicy;
  readonly sessions?: SessionShelf;
  readonly sink?: RecordingSink;
  readonly log?: Logger;
};

export type Bed = {
  readonly server: StratumServer;
  readonly source: TemplateSource;
  readonly sink: RecordingSink;
  readonly verifier: Verifier;
  readonly port: number;
  readonly wsPort: number;
};

export async function startBed(options: BedOptions = {}): Promise<Bed> {
  const {
    sources = [new TemplateSource()],
    nowMillis = Date.now,
    serverNow,
    verifier: given,
    blockWork,
    anchors = 'newest',
    sessions,
    sink = new RecordingSink(),
    log = quietLog,
    ...rest
  } = options;
  if (blockWork !== undefined)
    for (const source of sources) if (source instanceof TemplateSource) source.blockWork = blockWork;
  shared ??= createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
  const verifier = given ?? shared;
  const upstream = new NodeUpstream(
    { network: NETWORKS.development, ...UPSTREAM_DEFAULTS, anchors, retryMillis: 100 },
    { sources, now: nowMillis, log: quietLog },
  );
  const server = await createStratumServer(
    {
      network: NETWORKS.development,
      server: 'test/1.0',
      services: [BRIDGE],
      threads: 0,
      limits: EASY,
      wsOrigins: [],
      proxies: [],
      allow: [],
      certificate: null,
      ...rest,
    },
    {
      upstream,
      sink,
      verifier,
      log,
      ...(sessions === undefined ? {} : { sessions }),
      ...(serverNow === undefined ? {} : { now: serverNow }),
    },
  );
  onTestFinished(() => server.close());
  while (!(await server.figures()).ready) await new Promise((resolve) => setTimeout(resolve, 10));
  const portOf = (kind: 'tcp' | 'ws') => server.addresses.find((address) => address.kind === kind)?.port ?? 0;
  return { server, source: sources[0] as TemplateSource, sink, verifier, port: portOf('tcp'), wsPort: portOf('ws') };
}
