/**
 * Where a miner that may do anything is let loose: real stratum servers on real sockets, two instances that share their
 * ended sessions, cuts a few times a second, templates that come twice, restarts, and a clock that runs eight times as
 * fast, so that jobs expire and share works change while a strategy lasts. Only the hash is a quick one: it is not what
 * is tested, and each is counted.
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NodeUpstream, UPSTREAM_DEFAULTS } from '../../../bridge/nodes/upstream.ts';
import { LIMIT_DEFAULTS, type StratumLimits } from '../../../bridge/options.ts';
import { createStratumServer } from '../../../bridge/server.ts';
import type { StratumService } from '../../../bridge/service.ts';
import { LocalSessionShelf } from '../../../bridge/session/session-shelf.ts';
import type { ShareSink } from '../../../bridge/shares/sink.ts';
import type { StratumServer } from '../../../bridge/stratum-server.ts';
import type { Verifier } from '../../../kernels/verifier.ts';
import type { AnchorPolicy } from '../../../node/mining/anchor-choice.ts';
import type { Bytes } from '../../../protocol/bytes.ts';
import { NETWORKS } from '../../../protocol/network.ts';
import { TemplateSource } from '../../bridge/template-source.ts';
import { quietLog } from '../../quiet-log.ts';

export const quickHash = (header: Bytes): Bytes => createHash('sha256').update(header).digest();

export const quickVerifier: Verifier = {
  mode: 'full',
  queued: 0,
  epochs: [0],
  prepare: async () => {},
  hash: async (_epoch, header) => Uint8Array.from(quickHash(header)),
  hashMany: async (_epoch, headers) => headers.map((header) => Uint8Array.from(quickHash(header))),
  share: () => {
    throw new Error('one thread has no use for tickets');
  },
  close: async () => {},
};

const PACE = 8;
const CUT_MILLIS = 400;
export const MIN_WORK = 8n;
export const BLOCK_WORK = 512n;

/** Nobody is banned or slowed down here: what is tested is what would be credited to one who gets away with everything. */
const LIMITS: StratumLimits = {
  ...LIMIT_DEFAULTS,
  idleMillis: 3_600_000,
  loginMillis: 3_600_000,
  drainMillis: 100,
  requests: { perSecond: 1e6, burst: 1e6 },
  submits: { perSecond: 1e4, burst: 1e6 },
  submitsOverall: { perSecond: 1e6, burst: 1e6 },
  bans: { ...LIMIT_DEFAULTS.bans, limit: 1e12 },
  vardiff: { ...LIMIT_DEFAULTS.vardiff, startWork: 16n, minWork: MIN_WORK, secondsPerShare: 2 },
};

/** A sink per start of a server, under its boot id. */
export type Sinks = { readonly service: StratumService; open(bootId: Bytes): Promise<ShareSink> };

type Instance = { served: Served; readonly source: TemplateSource };
/** One start of an instance: its directory of sessions, and whether it is to end as if it were killed. */
type Served = { readonly server: StratumServer; readonly directory: string; readonly gate: { isShut: boolean } };

/** Whose shares are refused from some moment on: nothing is accepted any more that the files of that moment do not tell. */
function gated(sink: ShareSink, gate: { readonly isShut: boolean }): ShareSink {
  return {
    get accepting() {
      return sink.accepting && !gate.isShut;
    },
    ...(sink.own === undefined ? {} : { own: (ownerships) => sink.own?.(ownerships) ?? Promise.resolve() }),
    shares: (shares) => (gate.isShut ? Promise.reject(new Error('killed')) : sink.shares(shares)),
    refused: (shares) => sink.refused(shares),
    block: (block) => sink.block(block),
    blockFate: (blockId, fate) => sink.blockFate(blockId, fate),
    worker: (event) => sink.worker(event),
  };
}

export class World {
  readonly #sinks: Sinks;
  readonly #anchors: AnchorPolicy;
  readonly #start = Date.now();
  readonly #shelf = new LocalSessionShelf(LIMITS, () => this.now());
  readonly #instances: Instance[] = [];
  #timer: NodeJS.Timeout | undefined;
  #cuts = 0;
  #restarts = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), 'svc-credit-'));

  private constructor(sinks: Sinks, anchors: AnchorPolicy) {
    this.#sinks = sinks;
    this.#anchors = anchors;
  }

  static async open(sinks: Sinks, instances = 2, anchors: AnchorPolicy = 'newest'): Promise<World> {
    const world = new World(sinks, anchors);
    for (let i = 0; i < instances; i++) {
      const source = new TemplateSource(`node ${i}`);
      source.blockWork = BLOCK_WORK;
      // Few, so that the same anchor comes again and again.
      if (anchors === 'best') source.olderAnchors = 3;
      // Two draws, and a node that both instances agree with.
      source.transactions = [[new Uint8Array(40).fill(1)], [new Uint8Array(40).fill(2), new Uint8Array(50).fill(3)]];
      const [first] = world.#instances;
      if (first !== undefined) source.takeUp(first.source.height, first.source.cutId);
      world.#instances.push({ source, served: await world.#serve(source, directoryOf(world.#folder, i, 0)) });
    }
    world.#timer = setInterval(() => world.#cut(), CUT_MILLIS);
    return world;
  }

  now(): number {
    return this.#start + (Date.now() - this.#start) * PACE;
  }

  async #serve(source: TemplateSource, directory: string): Promise<Served> {
    const bootId = crypto.getRandomValues(new Uint8Array(8));
    const gate = { isShut: false };
    const upstream = new NodeUpstream(
      { network: NETWORKS.development, ...UPSTREAM_DEFAULTS, anchors: this.#anchors, retryMillis: 100 },
      { sources: [source], now: () => Date.now(), log: quietLog },
    );
    const server = await createStratumServer(
      {
        network: NETWORKS.development,
        server: 'test/1.0',
        services: [this.#sinks.service],
        threads: 0,
        limits: LIMITS,
        wsOrigins: [],
        proxies: [],
        allow: [],
        certificate: null,
        bootId,
        sessionsDirectory: directory,
      },
      {
        upstream,
        sink: gated(await this.#sinks.open(bootId), gate),
        verifier: quickVerifier,
        log: quietLog,
        sessions: this.#shelf,
        now: () => this.now(),
      },
    );
    while (!(await server.figures()).ready) await new Promise((resolve) => setTimeout(resolve, 5));
    return { server, directory, gate };
  }

  #cut(): void {
    this.#cuts++;
    for (const { source } of this.#instances)
      if (this.#cuts % 3 === 0) void this.#repeat(source);
      else {
        source.spoil = (answer) => answer;
        source.fees = 0n;
        source.cut();
      }
  }

  /** The same template once more, byte for byte; higher fees make the server publish it. */
  async #repeat(source: TemplateSource): Promise<void> {
    const standing = [await source.template(0), await source.template(1)];
    let asked = 0;
    source.spoil = () => ({ ...(standing[asked++ % 2] as (typeof standing)[0]), fees: BigInt(this.#cuts) ** 6n });
    source.back();
  }

  /**
   * One instance ends and is started again: another boot id, another port, the same sessions to be resumed. Every other
   * time it is killed: the next start has its files as they were while its connections lasted.
   */
  async restart(i: number): Promise<void> {
    const instance = this.#instances[i % this.#instances.length] as Instance;
    const { server, directory, gate } = instance.served;
    const next = directoryOf(this.#folder, i, ++this.#restarts);
    if (this.#restarts % 2 === 1) {
      gate.isShut = true;
      await settled([server]);
      cpSync(directory, next, { recursive: true });
      await server.close();
    } else {
      await server.close();
      cpSync(directory, next, { recursive: true });
    }
    instance.served = await this.#serve(instance.source, next);
  }

  port(i: number, kind: 'tcp' | 'ws'): number {
    const { server } = (this.#instances[i % this.#instances.length] as Instance).served;
    return server.addresses.find((address) => address.kind === kind)?.port ?? 0;
  }

  /** Resolves when every submit that was sent is judged. */
  settle(): Promise<void> {
    return settled(this.#instances.map(({ served }) => served.server));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#instances.map(({ served }) => served.server.close()));
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

const directoryOf = (folder: string, instance: number, start: number): string => join(folder, `${instance}-${start}`);

async function settled(servers: readonly StratumServer[]): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    await new Promise((resolve) => setTimeout(resolve, 30));
    const figures = await Promise.all(servers.map((server) => server.figures()));
    const isQuiet = figures.every(({ listeners }) => listeners.every(({ verifying }) => verifying === 0));
    quiet = isQuiet ? quiet + 1 : 0;
  }
}
