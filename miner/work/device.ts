/**
 * One device of the miner: a backend with its counters, its watchdog and its restarts. A device that is lost or stops
 * counting is reopened a few times and then stopped; one with bad hits is stopped at once. Loads in browsers.
 */
import type { Backend, BackendEvents, BackendKind, Hit, Progress, SearchJob } from '../../kernels/backend.ts';
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import { MinerError, type MinerErrorCode } from '../miner-error.ts';
import { HashRate, type Rates, WINDOWS } from './hash-rate.ts';
import { Watchdog } from './watchdog.ts';

export type DeviceState = 'opening' | 'preparing' | 'searching' | 'idle' | 'paused' | 'stopped';

export const DEVICE_DEFAULTS = {
  silentMillis: 30_000,
  /** How often a lost or silent device is reopened; the count is reset after an hour without trouble. */
  restarts: 3,
  forgiveMillis: 3_600_000,
  closeMillis: 5_000,
  restartMillis: 2_000,
  /** How long after a failed attempt to build ahead the next one is made. */
  aheadMillis: 600_000,
} as const;

/** Errors of the kernels (docs/errors.md) that will be the same next time. */
const LASTING: readonly string[] = [
  'kernel_memory_insufficient',
  'kernel_module_missing',
  'gpu_no_adapter',
  'gpu_module_missing',
  'gpu_limits',
  'gpu_memory',
  'gpu_compile',
  'gpu_wrong_dataset',
];

export type DeviceTimes = { readonly [K in keyof typeof DEVICE_DEFAULTS]: number };

export type DeviceOptions = {
  /** As in --devices. */
  readonly number: number;
  readonly kind: BackendKind;
  readonly name: string;
  readonly times?: Partial<DeviceTimes>;
};

export type DeviceDependencies = {
  readonly open: (events: BackendEvents) => Promise<Backend>;
  readonly now: MonotonicClock;
  readonly after: (millis: number, act: () => void) => void;
  readonly note: (level: 'info' | 'warn' | 'error', message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly onHit: (device: Device, hit: Hit) => void;
  readonly onStopped: (device: Device) => void;
  readonly onProgress?: (device: Device, progress: Progress) => void;
};

export type ShareCounts = { accepted: number; stale: number; rejected: number; lost: number; bad: number };

export class Device {
  readonly number: number;
  readonly kind: BackendKind;
  readonly shares: ShareCounts = { accepted: 0, stale: 0, rejected: 0, lost: 0, bad: 0 };
  readonly #times: DeviceTimes;
  readonly #dependencies: DeviceDependencies;
  readonly #rate = new HashRate();
  #threadRates: readonly HashRate[] = [];
  readonly #watchdog: Watchdog;
  #name: string;
  #backend: Backend | undefined;
  /** Counts openings, so that events of a replaced backend are ignored. */
  #life = 0;
  #job: SearchJob | undefined;
  #preparing: number | undefined;
  /** Counts builds: only the result of the newest one matters. */
  #build = 0;
  /** When an epoch was last tried to be built ahead. */
  #aheadAt: ReadonlyMap<number, number> = new Map();
  #paused = false;
  /** Between two turns of a throttle: it still counts as searching, so that the watchdog and what is built ahead go on. */
  #resting = false;
  #stopped: MinerError | undefined;
  #troubles = 0;
  #troubledAt = 0;
  /** Hashes of the backends before this one. */
  #before = 0;

  constructor(options: DeviceOptions, dependencies: DeviceDependencies) {
    this.number = options.number;
    this.kind = options.kind;
    this.#name = options.name;
    this.#times = { ...DEVICE_DEFAULTS, ...options.times };
    this.#dependencies = dependencies;
    this.#watchdog = new Watchdog(this.#times.silentMillis);
  }

  get name(): string {
    return this.#name;
  }

  get hashes(): number {
    return this.#before + (this.#backend?.hashes ?? 0);
  }

  get stopped(): MinerError | undefined {
    return this.#stopped;
  }

  get epochs(): readonly number[] {
    return this.#backend?.epochs ?? [];
  }

  get state(): DeviceState {
    if (this.#stopped !== undefined) return 'stopped';
    if (this.#backend === undefined) return 'opening';
    if (this.#preparing !== undefined && !this.#isReady()) return 'preparing';
    if (this.#paused) return 'paused';
    return this.#job === undefined ? 'idle' : 'searching';
  }

  rates(now: number): Rates {
    return this.#rate.rates(now);
  }

  /** Over 10 s; empty where the device has no threads. */
  threadRates(now: number): (number | undefined)[] {
    return this.#threadRates.map((rate) => rate.over(WINDOWS.short, now));
  }

  #isReady(): boolean {
    return this.#job !== undefined && this.epochs.includes(this.#job.epoch);
  }

  async start(): Promise<void> {
    const life = ++this.#life;
    const current = () => life === this.#life && this.#stopped === undefined;
    try {
      const backend = await this.#dependencies.open({
        onHit: (hit) => {
          if (current()) this.#dependencies.onHit(this, hit);
        },
        onExhausted: (jobId) => {
          if (current())
            this.#dependencies.note('info', 'all nonces of the job are tried', { device: this.label, job: jobId });
        },
        onFailure: (error) => {
          if (current()) this.#trouble('device_lost', error);
        },
        onProgress: (progress) => {
          if (current()) this.#dependencies.onProgress?.(this, progress);
        },
      });
      if (!current()) return void backend.close();
      this.#backend = backend;
      this.#name = backend.name;
      this.#watchdog.reset();
      if (this.#paused || this.#resting) backend.pause();
      if (this.#job !== undefined) this.#give(this.#job);
    } catch (error) {
      if (current()) this.#fail(error as Error);
    }
  }

  get label(): string {
    return `${this.number}: ${this.#name}`;
  }

  setJob(job: SearchJob | undefined): void {
    this.#job = job;
    if (this.#backend === undefined) return;
    if (job !== undefined) this.#give(job);
    else this.#backend.setJob(undefined);
  }

  #give(job: SearchJob): void {
    const backend = this.#backend as Backend;
    if (!backend.epochs.includes(job.epoch)) {
      void this.prepare(job.epoch);
      return;
    }
    try {
      backend.setJob(job);
    } catch (error) {
      this.#trouble('device_lost', error as Error);
    }
  }

  /** Whether an epoch that will be needed later may be built now: beside the search, and not again and again. */
  canBuildAhead(epoch: number, now: number): boolean {
    const tried = this.#aheadAt.get(epoch);
    const rested = tried === undefined || now - tried >= this.#times.aheadMillis;
    return this.state === 'searching' && this.#preparing === undefined && rested && !this.epochs.includes(epoch);
  }

  buildAhead(epoch: number, now: number): void {
    this.#aheadAt = new Map([[epoch, now]]);
    void this.prepare(epoch);
  }

  /** Builds the epoch's dataset and then starts the current job. */
  async prepare(epoch: number): Promise<void> {
    const backend = this.#backend;
    if (backend === undefined || this.#preparing === epoch) return;
    const life = this.#life;
    const build = ++this.#build;
    const isNewest = () => life === this.#life && build === this.#build && this.#stopped === undefined;
    this.#preparing = epoch;
    try {
      await backend.prepare(epoch);
    } catch (error) {
      if (!isNewest()) return;
      this.#preparing = undefined;
      if (this.#job?.epoch === epoch) return this.#fail(error as Error);
      // Only built ahead: there is time to try again.
      this.#dependencies.note('warn', 'the next dataset could not be built yet', { device: this.label, error });
      return;
    }
    if (!isNewest()) return;
    this.#preparing = undefined;
    const job = this.#job;
    if (job !== undefined && (job.epoch !== epoch || backend.epochs.includes(epoch))) this.#give(job);
  }

  pause(): void {
    this.#paused = true;
    this.#backend?.pause();
  }

  resume(): void {
    this.#paused = false;
    if (!this.#resting) this.#backend?.resume();
  }

  rest(): void {
    this.#resting = true;
    this.#backend?.pause();
  }

  work(): void {
    this.#resting = false;
    if (!this.#paused) this.#backend?.resume();
  }

  /** Once a second: reads the counter, and asks the watchdog. */
  tick(now: number): void {
    if (this.#stopped !== undefined) return;
    this.#rate.read(now, this.hashes);
    this.#readThreads(now);
    if (this.#troubles > 0 && now - this.#troubledAt > this.#times.forgiveMillis) this.#troubles = 0;
    if (this.#watchdog.check(now, this.state === 'searching', this.hashes))
      this.#trouble('device_silent', new Error(`no hashes for ${this.#times.silentMillis / 1_000} s`));
  }

  #readThreads(now: number): void {
    const counts = this.#backend?.threadHashes ?? [];
    if (counts.length !== this.#threadRates.length) this.#threadRates = counts.map(() => new HashRate());
    for (const [i, rate] of this.#threadRates.entries()) rate.read(now, counts[i] ?? 0);
  }

  /** Gives up the device, with the reason. */
  stop(code: MinerErrorCode, reason: string): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = new MinerError(code, reason);
    this.#dependencies.note('error', 'device stopped', { device: this.label, reason, code });
    this.#retire();
    this.#dependencies.onStopped(this);
  }

  /** Reopening helps if the driver lost the device, but not if memory is too small. */
  #fail(error: Error & { readonly code?: unknown }): void {
    if (LASTING.includes(error.code as string)) this.stop('device_lost', error.message);
    else this.#trouble('device_lost', error);
  }

  #trouble(code: 'device_lost' | 'device_silent', error: Error): void {
    this.#troubles++;
    this.#troubledAt = this.#dependencies.now();
    if (this.#troubles > this.#times.restarts) {
      this.stop(code, error.message);
      return;
    }
    this.#dependencies.note('warn', 'device is restarted', { device: this.label, reason: error.message, code });
    this.#retire();
    const life = this.#life;
    this.#dependencies.after(this.#times.restartMillis, () => {
      if (life === this.#life && this.#stopped === undefined) void this.start();
    });
  }

  /** Releases the backend without waiting for it: a hung one may never answer. */
  #retire(): void {
    const backend = this.#backend;
    this.#life++;
    this.#backend = undefined;
    this.#preparing = undefined;
    if (backend === undefined) return;
    this.#before += backend.hashes;
    backend.close().catch(() => undefined);
  }

  async close(): Promise<void> {
    const backend = this.#backend;
    this.#life++;
    this.#backend = undefined;
    if (backend === undefined) return;
    this.#before += backend.hashes;
    await Promise.race([
      backend.close().catch(() => undefined),
      new Promise<void>((resolve) => this.#dependencies.after(this.#times.closeMillis, resolve)),
    ]);
  }
}
