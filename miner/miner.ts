/**
 * Assembles the command-line miner: pools, devices and statistics. Everything that may change while it runs (pools,
 * devices) is replaced as a whole by apply().
 */
import type { NetworkName } from '../protocol/network.ts';
import type { ErrorReply } from '../protocol/stratum/errors.ts';
import type { MonotonicClock, WallClock } from '../runtime/clock/clock.ts';
import type { LogFields, Logger, LogLevel } from '../runtime/log/log.ts';
import { openBooks, type PoolBooks } from './books/pool-books.ts';
import { EpochAllowance, type Moment } from './client/epoch-allowance.ts';
import { PoolClient } from './client/pool-client.ts';
import { showEndpoint } from './client/pool-url.ts';
import type { PoolJob, Share, Verdict } from './client/session-events.ts';
import type { ListedDevice } from './devices/device-list.ts';
import { readEpochs, writeEpochs } from './devices/epoch-file.ts';
import { ExpectedRate } from './devices/expected-rate.ts';
import { RateFile } from './devices/rate-file.ts';
import type { TuningFile } from './devices/tuning-file.ts';
import type { Checker, MinerParts } from './miner-parts.ts';
import type { MinerValues } from './options.ts';
import { type PoolSettings, poolKey } from './pool-settings.ts';
import { type DeviceSnapshot, type Snapshot, totalRates } from './stats.ts';
import { AcceptedLine } from './terminal/accepted-line.ts';
import { LineLimit } from './terminal/line-limit.ts';
import type { ProgressLine } from './terminal/progress-line.ts';
import { AcceptedWork } from './work/accepted-work.ts';
import { Crew } from './work/crew.ts';
import { rhythmOf, Throttle } from './work/throttle.ts';

export type MinerSettings = PoolSettings & {
  readonly values: MinerValues;
  readonly devices: readonly ListedDevice[];
  readonly dataDir: string;
};

const TOO_MANY_REQUESTS = 27;

export type MinerDependencies = {
  readonly parts: MinerParts;
  readonly log: Logger;
  readonly progress: ProgressLine;
  readonly tunings: TuningFile;
  readonly version: string;
  readonly now: MonotonicClock;
  /** Milliseconds of the wall clock. */
  readonly wall: WallClock;
  /** No device is left to mine with. */
  readonly onNoDevice: () => void;
};

export class Miner {
  readonly #dependencies: MinerDependencies;
  readonly #began: number;
  #settings: MinerSettings;
  #books: PoolBooks | undefined;
  #client: PoolClient;
  #crew: Crew;
  #throttle: Throttle;
  #expected: ExpectedRate;
  #checker: Checker;
  #allowance: EpochAllowance;
  readonly #lines: LineLimit;
  readonly #accepted: AcceptedLine;
  #work = new AcceptedWork();
  #job: PoolJob | undefined;
  /** Where the job came from, as the user named it. */
  #pool = '';
  #blocks = 0;
  #fastest: number | undefined;
  #paused = false;
  #stopTicks: (() => void) | undefined;

  constructor(settings: MinerSettings, dependencies: MinerDependencies) {
    this.#settings = settings;
    this.#dependencies = dependencies;
    this.#began = dependencies.now();
    const { now } = dependencies;
    const write = (level: LogLevel, message: string, fields: LogFields): void => {
      dependencies.progress.break();
      dependencies.log[level](message, fields);
    };
    this.#lines = new LineLimit(write, now);
    this.#accepted = new AcceptedLine(write, now, settings.values.verbose);
    this.#allowance = this.#makeAllowance();
    this.#checker = this.#makeChecker();
    this.#crew = this.#makeCrew();
    this.#throttle = this.#makeThrottle();
    this.#expected = this.#makeExpected();
    this.#books = this.#makeBooks();
    this.#client = this.#makeClient();
  }

  get #network(): NetworkName {
    return this.#settings.user.address.network;
  }

  start(): void {
    this.#addDevices();
    this.#throttle.start();
    this.#books?.start();
    this.#client.start();
    const { parts, now } = this.#dependencies;
    parts.sensors.start();
    this.#stopTicks = parts.every(1_000, () => {
      this.#crew.tick(now());
      this.#lines.tick();
      this.#accepted.tick();
      this.#expected.tick();
      this.#readFastest(now());
    });
  }

  #readFastest(now: number): void {
    const { short } = totalRates(this.#crew.devices.map((device) => ({ rates: device.rates(now) })));
    if (short !== undefined) this.#fastest = Math.max(short, this.#fastest ?? 0);
  }

  #moment(): Moment {
    return { steady: this.#dependencies.now(), wall: this.#dependencies.wall() };
  }

  #makeAllowance(): EpochAllowance {
    const { dataDir } = this.#settings;
    const network = this.#network;
    return new EpochAllowance(network, this.#moment(), readEpochs(dataDir, network), (pools) => {
      writeEpochs(dataDir, network, pools).catch((error) =>
        this.#lines.note('warn', 'the epochs of the pools cannot be saved', { error }),
      );
    });
  }

  #makeChecker(): Checker {
    const { parts, log } = this.#dependencies;
    return parts.makeChecker(this.#network, log);
  }

  #makeCrew(): Crew {
    const { now, progress, onNoDevice, parts } = this.#dependencies;
    return new Crew(
      {},
      {
        checker: this.#checker,
        now,
        after: parts.after,
        note: (level, message, fields) => this.#lines.note(level, message, fields),
        onProgress: (device, state) => progress.show(device.label, state),
        onShare: (share) => this.#client.submit(share),
        onStale: () => this.#client.missed(),
        waiting: () => this.#client.waiting,
        ...(this.#network === 'development'
          ? {}
          : {
              allowsAhead: (epoch) => this.#allowance.allowsAhead(this.#pool, epoch, this.#crew.epochs, this.#moment()),
            }),
        onNoDevice,
      },
    );
  }

  #addDevices(): void {
    const { values, devices, dataDir } = this.#settings;
    const { log, tunings, parts } = this.#dependencies;
    const settings = { network: this.#network, light: values.light, unsafeGpu: values.unsafeGpu, dataDir };
    for (const device of devices)
      this.#crew.add(
        { number: device.number, kind: device.kind, name: device.name, times: { silentMillis: values.watchdog } },
        (events) => parts.openDevice(device, settings, { log, tunings }, events),
      );
    if (this.#job !== undefined) this.#crew.setJob(this.#job);
  }

  /** The same for all devices: the work in flight on a graphics card determines the length of a turn. */
  #makeThrottle(): Throttle {
    const { values, devices } = this.#settings;
    const kind = devices.some((device) => device.kind === 'webgpu') ? 'webgpu' : 'wasm';
    return new Throttle(this.#crew, values.throttle / 100, rhythmOf(kind));
  }

  #makeExpected(): ExpectedRate {
    const { dataDir, devices, values } = this.#settings;
    return new ExpectedRate(
      { file: new RateFile(dataDir, this.#network), devices, light: values.light, throttle: values.throttle / 100 },
      {
        now: this.#dependencies.now,
        running: () => this.#crew.devices,
        onUnsaved: (error) => this.#lines.note('warn', 'the rates of the devices cannot be saved', { error }),
      },
    );
  }

  #makeBooks(): PoolBooks | undefined {
    const { values, dataDir, tls } = this.#settings;
    const { now, wall, parts } = this.#dependencies;
    return openBooks(values, dataDir, {
      now,
      wall,
      random: parts.random,
      fetch: parts.fetch(tls),
      note: (level, message, fields) => this.#lines.note(level, message, fields),
    });
  }

  #makeClient(): PoolClient {
    const { values, user, tls } = this.#settings;
    const { now, version, parts } = this.#dependencies;
    return new PoolClient(
      {
        pools: values.pool.map(({ endpoint }) => endpoint),
        session: {
          network: this.#network,
          address: user.text,
          own: user.address.payload,
          worker: user.worker,
          password: values.password ?? '',
          expectedRate: () => this.#expected.rate(),
          agent: `svc-miner/${version}`,
          tag: values.tag ?? '',
          pinned: values.expectPayout?.payload,
        },
      },
      {
        onJob: (job, pool) => this.#onJob(job, pool),
        onVerdict: (share, verdict, error, blockId) => this.#onVerdict(share, verdict, error, blockId),
        ...(this.#books === undefined ? {} : { books: this.#books }),
      },
      {
        random: parts.random,
        every: parts.every,
        now,
        connect: parts.connect(tls),
        note: (level, message, fields) => this.#lines.note(level, message, fields),
        refusesJob: (pool, { job: { epoch }, height }) =>
          this.#allowance.refuses({ pool: this.#poolText(pool), epoch, height }, this.#crew.epochs, this.#moment()),
      },
    );
  }

  #poolText(pool: number): string {
    return this.#settings.values.pool[pool]?.text ?? '';
  }

  #onJob(job: PoolJob | undefined, pool?: number): void {
    if (job === undefined) this.#lines.note('warn', 'no work: devices wait for a pool', {});
    else {
      this.#work.begin(this.#dependencies.now());
      const { jobId, epoch, clean } = job.job;
      this.#lines.note('debug', 'new job', { id: jobId, epoch, shareWork: job.work, clean });
    }
    this.#job = job;
    this.#pool = pool === undefined ? '' : this.#poolText(pool);
    this.#crew.setJob(job);
  }

  #onVerdict(share: Share, verdict: Verdict, error: ErrorReply | undefined, blockId: Uint8Array | undefined): void {
    const device = this.#crew.devices.find(({ number }) => number === share.device);
    if (device !== undefined) device.shares[verdict]++;
    if (error?.code === TOO_MANY_REQUESTS) this.#crew.tooManyShares();
    if (verdict === 'accepted') {
      this.#work.add(this.#dependencies.now(), share.work);
      this.#accepted.add(share.device, share.work);
    } else
      this.#lines.note('warn', `share ${verdict}`, {
        device: share.device,
        ...(error === undefined ? {} : { reason: error.message, code: error.code }),
      });
    if (blockId !== undefined) {
      this.#blocks++;
      this.#lines.note('info', 'block found', { id: blockId });
    }
  }

  pause(): void {
    if (!this.#paused) this.#dependencies.log.info('paused');
    this.#paused = true;
    this.#crew.pause();
  }

  resume(): void {
    if (this.#paused) this.#dependencies.log.info('resumed');
    this.#paused = false;
    this.#crew.resume();
  }

  /** New settings while it runs: pools and devices are replaced where they differ. */
  async apply(settings: MinerSettings): Promise<void> {
    const old = this.#settings;
    const otherNetwork = settings.user.address.network !== this.#network;
    const otherDevices = otherNetwork || deviceKey(old) !== deviceKey(settings);
    const otherPools = sessionKey(old) !== sessionKey(settings);
    this.#settings = settings;
    const { log } = this.#dependencies;
    if (otherPools) {
      log.info('pools changed', { pools: settings.values.pool.map(({ text }) => text) });
      this.#client.stop();
      this.#onJob(undefined);
      await this.#books?.stop();
      this.#books = this.#makeBooks();
      this.#books?.start();
      this.#client = this.#makeClient();
    }
    if (settings.values.throttle !== old.values.throttle)
      log.info('throttle changed', { percent: settings.values.throttle });
    this.#throttle.stop();
    if (otherDevices) {
      log.info('devices changed', { devices: settings.devices.map(({ number }) => number) });
      await this.#crew.close();
      if (otherNetwork) {
        await this.#checker.close();
        this.#checker = this.#makeChecker();
        this.#allowance = this.#makeAllowance();
      }
      this.#crew = this.#makeCrew();
      this.#addDevices();
      if (this.#paused) this.#crew.pause();
    }
    this.#throttle = this.#makeThrottle();
    this.#throttle.start();
    this.#expected = this.#makeExpected();
    if (otherPools) this.#client.start();
  }

  snapshot(): Snapshot {
    const now = this.#dependencies.now();
    const { user, values } = this.#settings;
    const { state, nextTryMillis } = this.#client;
    let card = 0;
    const devices = this.#crew.devices.map(
      (device): DeviceSnapshot => ({
        number: device.number,
        name: device.name,
        kind: device.kind,
        state: device.state,
        reason: device.stopped?.message,
        rates: device.rates(now),
        threads: device.threadRates(now),
        hashes: device.hashes,
        shares: device.shares,
        sensor: this.#dependencies.parts.sensors.of(device.kind === 'webgpu' ? card++ : 'processor'),
      }),
    );
    return {
      version: this.#dependencies.version,
      uptimeSeconds: (now - this.#began) / 1_000,
      network: this.#network,
      address: user.text,
      worker: user.worker,
      paused: this.#paused,
      pool: state === undefined ? undefined : { ...state, connectedSeconds: (now - state.connectedAt) / 1_000 },
      pools: values.pool.map(({ endpoint }) => showEndpoint(endpoint)),
      connections: this.#client.connections,
      nextTrySeconds: nextTryMillis === undefined ? undefined : nextTryMillis / 1_000,
      lastRefusal: this.#client.lastRefusal,
      poolRate: this.#work.rate(now),
      acceptedWork: this.#work.total,
      shareWork: this.#job?.work,
      fastest: this.#fastest,
      blocks: this.#blocks,
      books: this.#books?.figures,
      devices,
    };
  }

  async stop(): Promise<void> {
    this.#stopTicks?.();
    this.#throttle.stop();
    this.#dependencies.parts.sensors.stop();
    this.#client.stop();
    await this.#books?.stop();
    await this.#crew.close();
    await this.#checker.close();
    this.#lines.end();
  }
}

const sessionKey = (settings: MinerSettings): string =>
  JSON.stringify([poolKey(settings), settings.values.password, settings.values.tag]);

const deviceKey = ({ values, devices }: MinerSettings): string =>
  JSON.stringify([devices, values.light, values.unsafeGpu, values.watchdog]);
