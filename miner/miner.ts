/**
 * The command-line miner put together: pools on one side, devices on the other, figures in between. Everything that may
 * change while it runs (pools, devices) is replaced as a whole by apply().
 */
import { createVerifier, type Verifier } from '../kernels/verifier.ts';
import { NETWORKS, type NetworkName } from '../protocol/network.ts';
import { formatUsername } from '../protocol/stratum/username.ts';
import type { Logger } from '../runtime/log.ts';
import { EpochAllowance } from './client/job-check.ts';
import { PoolClient, systemClock } from './client/pool-client.ts';
import { showEndpoint } from './client/pool-url.ts';
import type { PoolJob, Share, Verdict } from './client/session.ts';
import { connectFromNode } from './client/transport-node.ts';
import type { ListedDevice } from './device-list.ts';
import { openDevice } from './open-device.ts';
import type { MinerValues } from './options.ts';
import type { ProgressLine } from './progress-line.ts';
import { Sensors } from './sensors.ts';
import type { DeviceSnapshot, Snapshot } from './stats.ts';
import type { TuningFile } from './tuning-file.ts';
import { AcceptedWork } from './work/accepted-work.ts';
import { Crew } from './work/crew.ts';

export type MinerSettings = {
  readonly values: MinerValues;
  readonly user: NonNullable<MinerValues['user']>;
  readonly devices: readonly ListedDevice[];
  readonly dataDir: string;
  readonly authorities: string | undefined;
};

export type MinerDependencies = {
  readonly log: Logger;
  readonly progress: ProgressLine;
  readonly tunings: TuningFile;
  readonly version: string;
  readonly now: () => number;
  /** No device is left to mine with. */
  readonly onNoDevice: () => void;
};

export class Miner {
  readonly #dependencies: MinerDependencies;
  readonly #sensors = new Sensors();
  readonly #began: number;
  #settings: MinerSettings;
  #client: PoolClient;
  #crew: Crew;
  #checker: Verifier;
  #allowance: EpochAllowance;
  #work = new AcceptedWork();
  #job: PoolJob | undefined;
  #blocks = 0;
  #paused = false;
  #ticks: ReturnType<typeof setInterval> | undefined;

  constructor(settings: MinerSettings, dependencies: MinerDependencies) {
    this.#settings = settings;
    this.#dependencies = dependencies;
    this.#began = dependencies.now();
    this.#allowance = new EpochAllowance(this.#network, this.#began);
    this.#checker = this.#makeChecker();
    this.#crew = this.#makeCrew();
    this.#client = this.#makeClient();
  }

  get #network(): NetworkName {
    return this.#settings.user.address.network;
  }

  start(): void {
    this.#addDevices();
    this.#client.start();
    this.#sensors.start();
    this.#ticks = setInterval(() => this.#crew.tick(this.#dependencies.now()), 1_000);
  }

  #makeChecker(): Verifier {
    const { log } = this.#dependencies;
    return createVerifier(
      { network: NETWORKS[this.#network], mode: 'light', threads: 1 },
      { log: (message, fields) => log.warn(message, fields) },
    );
  }

  #makeCrew(): Crew {
    const { log, now, progress, onNoDevice } = this.#dependencies;
    return new Crew(
      { buildAhead: this.#network !== 'development' },
      {
        checker: this.#checker,
        now,
        after: (millis, act) => void setTimeout(act, millis).unref(),
        note: (level, message, fields) => {
          progress.break();
          log[level](message, fields);
        },
        onProgress: (device, state) => progress.show(device.label, state),
        onShare: (share) => this.#client.submit(share),
        onNoDevice,
      },
    );
  }

  #addDevices(): void {
    const { values, devices, dataDir } = this.#settings;
    const { log, tunings } = this.#dependencies;
    const settings = { network: this.#network, light: values.light, unsafeGpu: values.unsafeGpu, dataDir };
    for (const device of devices)
      this.#crew.add(
        { number: device.number, kind: device.kind, name: device.name, times: { silentMillis: values.watchdog } },
        (events) => openDevice(device, settings, { log, tunings }, events),
      );
    if (this.#job !== undefined) this.#crew.setJob(this.#job);
  }

  #makeClient(): PoolClient {
    const { values, user, authorities } = this.#settings;
    const { log, now, version, progress } = this.#dependencies;
    const tls = { pins: values.tlsPin, ...(authorities === undefined ? {} : { authorities }) };
    return new PoolClient(
      {
        pools: values.pool.map(({ endpoint }) => endpoint),
        session: {
          network: this.#network,
          address: user.text,
          own: user.address.payload,
          worker: user.worker,
          password: values.password ?? '',
          agent: `svc-miner/${version}`,
          tag: values.tag ?? '',
          pinned: values.expectPayout?.payload,
        },
      },
      {
        onJob: (job) => this.#onJob(job),
        onVerdict: (share, verdict, error, blockId) => this.#onVerdict(share, verdict, error?.message, blockId),
      },
      {
        ...systemClock,
        now,
        connect: connectFromNode(tls),
        note: (level, message, fields) => {
          progress.break();
          log[level](message, fields);
        },
        allowsEpoch: (epoch) => this.#allowsEpoch(epoch),
      },
    );
  }

  #allowsEpoch(epoch: number): boolean {
    if (epoch === this.#job?.job.epoch) return true;
    return this.#allowance.allows(epoch, this.#crew.epochs, this.#dependencies.now());
  }

  #onJob(job: PoolJob | undefined): void {
    const { log, now } = this.#dependencies;
    if (job === undefined) log.warn('no work: devices wait for a pool');
    else {
      this.#work.begin(now());
      log.debug('new job', { id: job.job.jobId, epoch: job.job.epoch, shareWork: job.work, clean: job.job.clean });
    }
    this.#job = job;
    this.#crew.setJob(job);
  }

  #onVerdict(share: Share, verdict: Verdict, reason: string | undefined, blockId: Uint8Array | undefined): void {
    const { log, now, progress } = this.#dependencies;
    const device = this.#crew.devices.find(({ number }) => number === share.device);
    if (device !== undefined) device.shares[verdict]++;
    progress.break();
    if (verdict === 'accepted') {
      this.#work.add(now(), share.work);
      log.info('share accepted', { device: share.device, work: share.work });
    } else log.warn(`share ${verdict}`, { device: share.device, ...(reason === undefined ? {} : { reason }) });
    if (blockId !== undefined) {
      this.#blocks++;
      log.info('block found', { id: blockId });
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
    const otherPools = poolKey(old) !== poolKey(settings);
    this.#settings = settings;
    const { log } = this.#dependencies;
    if (otherPools) {
      log.info('pools changed', { pools: settings.values.pool.map(({ text }) => text) });
      this.#client.stop();
      this.#onJob(undefined);
      this.#client = this.#makeClient();
    }
    if (otherDevices) {
      log.info('devices changed', { devices: settings.devices.map(({ number }) => number) });
      await this.#crew.close();
      if (otherNetwork) {
        await this.#checker.close();
        this.#checker = this.#makeChecker();
        this.#allowance = new EpochAllowance(this.#network, this.#dependencies.now());
      }
      this.#crew = this.#makeCrew();
      this.#addDevices();
      if (this.#paused) this.#crew.pause();
    }
    if (otherPools) this.#client.start();
  }

  snapshot(): Snapshot {
    const now = this.#dependencies.now();
    const { user, values } = this.#settings;
    const { state } = this.#client;
    let card = 0;
    const devices = this.#crew.devices.map(
      (device): DeviceSnapshot => ({
        number: device.number,
        name: device.name,
        kind: device.kind,
        state: device.state,
        reason: device.stopped?.message,
        rates: device.rates(now),
        hashes: device.hashes,
        shares: device.shares,
        sensor: device.kind === 'webgpu' ? this.#sensors.of(card++) : undefined,
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
      lastRefusal: this.#client.lastRefusal,
      poolRate: this.#work.rate(now),
      acceptedWork: this.#work.total,
      blocks: this.#blocks,
      devices,
    };
  }

  async stop(): Promise<void> {
    clearInterval(this.#ticks);
    this.#sensors.stop();
    this.#client.stop();
    await this.#crew.close();
    await this.#checker.close();
  }
}

const poolKey = ({ values, user, authorities }: MinerSettings): string =>
  JSON.stringify([
    values.pool.map(({ text }) => text),
    formatUsername(user.text, user.worker),
    values.password,
    values.tag,
    values.expectPayout === undefined ? null : [...values.expectPayout.payload],
    values.tlsPin,
    authorities ?? null,
  ]);

const deviceKey = ({ values, devices }: MinerSettings): string =>
  JSON.stringify([devices, values.light, values.unsafeGpu, values.watchdog]);
