/**
 * The miner for a page (docs/miner.md, "In a page"): the same client, crew and checks as the command line, over WebSocket,
 * with WebGPU in a worker or WebAssembly in workers. Where the page is not cross-origin isolated the WebAssembly form
 * has one thread. The page that shows it asks for consent first; this class starts nothing on its own.
 */
import type { Backend, BackendEvents, Progress } from '../../kernels/backend.ts';
import { createWasmBackend } from '../../kernels/cpu/wasm-backend.ts';
import { parseAddress } from '../../protocol/address.ts';
import { powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { monotonicMillis } from '../../runtime/clock/clock.ts';
import { EpochAllowance, type Moment } from '../client/epoch-allowance.ts';
import { PoolClient, systemClock } from '../client/pool-client.ts';
import { parsePoolUrl } from '../client/pool-url.ts';
import { connectFromBrowser } from '../client/transport-browser.ts';
import { MinerError } from '../miner-error.ts';
import { AcceptedWork } from '../work/accepted-work.ts';
import { Crew } from '../work/crew.ts';
import type { DeviceState } from '../work/device.ts';
import type { GpuSettings } from '../work/gpu-settings.ts';
import type { Rates } from '../work/hash-rate.ts';
import { type DevicePort, type FromDevice, openRemoteBackend } from '../work/remote-backend.ts';
import { ThreadChecker } from '../work/thread-checker.ts';
import { rhythmOf, Throttle } from '../work/throttle.ts';
import { whyNoCard } from './choose-device.ts';
import { PageBooks, type PageBooksFigures, type PageBooksOptions } from './page-books.ts';

export type PageMinerOptions = {
  /** ws:// or wss://, with ?protocol=v2 for the binary form. */
  readonly url: string;
  readonly address: string;
  readonly worker?: string;
  /** `auto` uses a suitable graphics card, otherwise the processor, and reports that. */
  readonly device?: 'auto' | 'webgpu' | 'wasm';
  /** Fraction of the time to work, from 0.05 to 1. */
  readonly throttle?: number;
  /** Threads of the WebAssembly form; by default half of the cores. */
  readonly threads?: number;
  /** Without the dataset: slow, but 64 MiB instead of 2 GiB. */
  readonly light?: boolean;
  readonly expectPayout?: string;
  readonly agent?: string;
  /** The pool's API, to compare its books; and the page's storage for that. */
  readonly books?: Pick<PageBooksOptions, 'api' | 'storage' | 'node'>;
};

export type PageMinerStats = {
  readonly state: DeviceState | 'off';
  readonly device: string;
  readonly kind: 'webgpu' | 'wasm' | undefined;
  readonly threads: 'shared' | 'single' | undefined;
  readonly paused: boolean;
  readonly connected: boolean;
  readonly pool: string | undefined;
  readonly latencyMillis: number | undefined;
  readonly hashes: number;
  /** Hashes per second. */
  readonly rates: Rates;
  readonly poolRate: number | undefined;
  readonly accepted: number;
  readonly stale: number;
  readonly rejected: number;
  readonly lost: number;
  readonly bad: number;
  readonly acceptedWork: bigint;
  readonly progress: Progress | undefined;
  /** The last thing that went wrong, in words. */
  readonly problem: string | undefined;
  /** Why another device than a graphics card was chosen. */
  readonly notice: string | undefined;
  /** The watch over the pool's books; undefined without one. */
  readonly books: PageBooksFigures | undefined;
};

const STATS_MILLIS = 1_000;

function workerPort(): DevicePort<GpuSettings> {
  const worker = new Worker(new URL('./gpu-worker.ts', import.meta.url), { type: 'module', name: 'gpu' });
  return {
    post: (message) => worker.postMessage(message),
    listen(onMessage, onGone) {
      worker.onmessage = (event: MessageEvent<FromDevice>) => onMessage(event.data);
      worker.onerror = (event) => onGone(event.message || 'it could not be loaded');
    },
    kill: () => worker.terminate(),
  };
}

type Running = {
  readonly client: PoolClient;
  readonly books: PageBooks | undefined;
  readonly crew: Crew;
  readonly checker: ThreadChecker;
  throttle: Throttle;
  kind: 'webgpu' | 'wasm';
  readonly work: AcceptedWork;
  readonly timer: ReturnType<typeof setInterval>;
};

const isolated = (): boolean => globalThis.crossOriginIsolated === true;

const browserGpu = (): GPU | undefined =>
  typeof navigator === 'object' ? (navigator as Navigator & { gpu?: GPU }).gpu : undefined;

export const hasWebGpu = (): boolean => browserGpu() !== undefined;

const usesProcessor = (why: string): string => `The processor is used: ${why}.`;

export class PageMiner {
  /** Called about once a second, and when something changes. */
  onStats: ((stats: PageMinerStats) => void) | undefined;
  #running: Running | undefined;
  #paused = false;
  #problem: string | undefined;
  #notice: string | undefined;
  /** Counts starts: one that was superseded while it looked for a card ends there. */
  #starts = 0;
  #progress: Progress | undefined;

  /** Throws a MinerError or ProtocolError when an option is wrong; later trouble is reported by onStats. */
  async start(options: PageMinerOptions): Promise<void> {
    await this.stop();
    const endpoint = parsePoolUrl(options.url);
    if (endpoint.transport !== 'ws' && endpoint.transport !== 'wss')
      throw new MinerError('pool_url', 'a page can reach only ws:// and wss:// addresses');
    const address = parseAddress(options.address);
    const network = NETWORKS[address.network];
    const pinned =
      options.expectPayout === undefined ? undefined : parseAddress(options.expectPayout, address.network).payload;
    const wanted = options.device ?? 'auto';
    const begun = ++this.#starts;
    const why = wanted === 'auto' ? await whyNoCard(browserGpu(), network.pow.pagesLog2) : undefined;
    if (begun !== this.#starts) return;
    const kind = wanted === 'wasm' || why !== undefined ? 'wasm' : 'webgpu';
    this.#notice = why === undefined ? undefined : usesProcessor(why);
    const now = monotonicMillis;
    const work = new AcceptedWork();
    const moment = (): Moment => ({ steady: performance.now(), wall: Date.now() });
    const allowance = new EpochAllowance(address.network, moment());
    this.#paused = false;
    this.#problem = undefined;
    this.#progress = undefined;
    const note = (level: string, message: string, fields: Readonly<Record<string, unknown>>): void => {
      if (level !== 'warn' && level !== 'error') return;
      this.#problem = `${message}${fields.reason === undefined ? '' : `: ${fields.reason}`}`;
      this.#tell();
    };
    const checker = new ThreadChecker(powParameters(network));
    const crew = new Crew(
      {},
      {
        checker,
        now,
        after: (millis, act) => void setTimeout(act, millis),
        note,
        onProgress: (_device, progress) => {
          this.#progress = progress.done >= progress.total ? undefined : progress;
          this.#tell();
        },
        onShare: (share) => client.submit(share),
        onStale: () => client.missed(),
        waiting: () => client.waiting,
        onNoDevice: () => {
          if (wanted === 'auto' && this.#running?.kind === 'webgpu') this.#fallBack(this.#running, options);
          this.#tell();
        },
      },
    );
    const { url: pool, worker = '' } = options;
    const books =
      options.books === undefined
        ? undefined
        : new PageBooks({ ...options.books, pool, address: options.address, worker }, () => this.#tell());
    const client = new PoolClient(
      {
        pools: [endpoint],
        session: {
          network: address.network,
          address: options.address,
          own: address.payload,
          worker: options.worker ?? '',
          password: '',
          agent: options.agent ?? 'svc-page-miner',
          tag: '',
          pinned,
        },
      },
      {
        onJob: (next) => {
          if (next !== undefined) {
            this.#problem = undefined;
            work.begin(now());
          }
          crew.setJob(next);
          this.#tell();
        },
        onVerdict: (share, verdict, error, blockId) => {
          if (blockId !== undefined) note('info', 'block found', { id: blockId });
          if (error?.code === CODE.too_many_requests) crew.tooManyShares();
          const device = crew.devices.find(({ number }) => number === share.device);
          if (device !== undefined) device.shares[verdict]++;
          if (verdict === 'accepted') work.add(now(), share.work);
          this.#tell();
        },
        ...(books === undefined ? {} : { books }),
      },
      {
        ...systemClock,
        connect: connectFromBrowser,
        note,
        refusesJob: (_pool, { job: { epoch }, height }) =>
          allowance.refuses({ pool: options.url, epoch, height }, crew.epochs, moment()),
      },
    );
    crew.add({ number: 0, kind, name: kind }, (events) => openBackend(kind, options, events));
    const throttle = new Throttle(crew, options.throttle ?? 1, rhythmOf(kind));
    throttle.start();
    client.start();
    const timer = setInterval(() => {
      crew.tick(now());
      this.#tell();
    }, STATS_MILLIS);
    this.#running = { client, books, crew, checker, throttle, kind, work, timer };
    this.#tell();
  }

  pause(): void {
    this.#paused = true;
    this.#running?.crew.pause();
    this.#tell();
  }

  resume(): void {
    this.#paused = false;
    this.#running?.crew.resume();
    this.#tell();
  }

  /** Fraction of the time to work, from 0.05 to 1. */
  setThrottle(part: number): void {
    if (this.#running !== undefined) this.#running.throttle.part = part;
  }

  /** The card was chosen automatically but cannot be used. */
  #fallBack(running: Running, options: PageMinerOptions): void {
    const [card] = running.crew.devices;
    this.#notice = usesProcessor(card?.stopped?.message ?? 'the graphics card failed');
    running.kind = 'wasm';
    const { part } = running.throttle;
    running.throttle.stop();
    running.crew.add({ number: 1, kind: 'wasm', name: 'wasm' }, (events) => openBackend('wasm', options, events));
    running.throttle = new Throttle(running.crew, part, rhythmOf('wasm'));
    running.throttle.start();
  }

  async stop(): Promise<void> {
    this.#starts++;
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    clearInterval(running.timer);
    running.throttle.stop();
    running.client.stop();
    running.books?.stop();
    await running.crew.close();
    await running.checker.close();
    this.#tell();
  }

  get stats(): PageMinerStats {
    const running = this.#running;
    const device = running?.crew.devices.at(-1);
    const pool = running?.client.state;
    const now = performance.now();
    const shares = device?.shares ?? { accepted: 0, stale: 0, rejected: 0, lost: 0, bad: 0 };
    return {
      state: device?.state ?? 'off',
      device: device?.name ?? '',
      kind: running?.kind,
      threads: running?.kind === 'wasm' ? (isolated() ? 'shared' : 'single') : undefined,
      paused: this.#paused,
      connected: pool !== undefined,
      pool: pool?.poolName ?? pool?.server,
      latencyMillis: pool?.latencyMillis,
      hashes: device?.hashes ?? 0,
      rates: device?.rates(now) ?? { short: undefined, medium: undefined, long: undefined },
      poolRate: running?.work.rate(now),
      ...shares,
      acceptedWork: running?.work.total ?? 0n,
      progress: this.#progress,
      problem: device?.stopped?.message ?? this.#problem,
      notice: running === undefined ? undefined : this.#notice,
      books: running?.books?.figures,
    };
  }

  #tell(): void {
    this.onStats?.(this.stats);
  }
}

function openBackend(kind: 'webgpu' | 'wasm', options: PageMinerOptions, events: BackendEvents): Promise<Backend> {
  const { network } = parseAddress(options.address);
  if (kind === 'webgpu') {
    // A page starts at once, without tuning.
    const settings: GpuSettings = {
      network,
      adapter: undefined,
      unsafe: false,
      autoTune: false,
      tuning: undefined,
      timed: false,
    };
    return openRemoteBackend({ kind, settings }, workerPort(), events);
  }
  const threads = options.threads ?? Math.max(1, Math.floor((navigator.hardwareConcurrency ?? 2) / 2));
  const mode = options.light === true ? 'light' : 'full';
  return Promise.resolve(createWasmBackend({ network: NETWORKS[network], mode, threads, builders: threads }, events));
}
