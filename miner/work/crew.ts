/**
 * The devices at work together: every job goes to all of them at once, each with its own part of the nonces; every hit
 * is recomputed on the processor before it leaves as a share, and a device whose hits are wrong is named and stopped.
 * Loads in browsers.
 */
import { freeNonces, type Hit, type SearchJob, splitNonces } from '../../kernels/backend.ts';
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { ANCHOR_ID_OFFSET, NONCE_OFFSET, TARGET_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetOfWork, targetToBytes, workOfHash } from '../../protocol/ledger/target.ts';
import { POW_EPOCH_CUTS } from '../../protocol/network.ts';
import type { PoolJob, Share } from '../client/session-events.ts';
import { Device, type DeviceDependencies, type DeviceOptions } from './device.ts';
import { Pace } from './pace.ts';

/** The part of a Verifier that the crew needs. */
export type HitChecker = {
  readonly epochs: readonly number[];
  prepare(epoch: number): Promise<void>;
  hash(epoch: number, header: Bytes): Promise<Bytes>;
};

export const CREW_DEFAULTS = {
  tickMillis: 1_000,
  /** Bad hits that stop a device; good ones in a row that cancel one bad one. */
  badHits: 2,
  forgivenAfter: 1_000,
  /** Jobs whose hits are still taken: a server takes shares of a job some time after the next one. */
  jobsKept: 64,
  /** Hits that are recomputed at one time. */
  mostChecking: 256,
  /** Cuts before the end of an epoch at which the next dataset is built: two hours. */
  aheadCuts: 2_880,
  /** In this time a server learns the rate of the devices. */
  learnMillis: 60_000,
} as const;

export type CrewOptions = { readonly badHits?: number };

export type CrewDependencies = Omit<DeviceDependencies, 'open' | 'onHit' | 'onStopped'> & {
  readonly checker: HitChecker;
  readonly onShare: (share: Share) => void;
  /** A hit on a job that is known no longer: a clean one came since, or too many. */
  readonly onStale: () => void;
  /** Shares that wait to be sent. */
  readonly waiting: () => number;
  /** Whether the next epoch's dataset may be built now. Without it none is built ahead. */
  readonly allowsAhead?: (epoch: number) => boolean;
  /** The last device was stopped. */
  readonly onNoDevice: () => void;
};

type KnownJob = {
  /** The id that hits refer to. */
  readonly number: number;
  readonly pool: PoolJob;
  /** With the server's prefix in the nonce. */
  readonly header: Uint8Array<ArrayBuffer>;
  /** The server's share target; the devices may have a harder one (pace.ts). */
  readonly target: Uint8Array<ArrayBuffer>;
  readonly seen: Set<string>;
  /** Work of a hit at the devices' target. */
  handedWork: bigint;
  /** How often it was given to the devices: each time they start at a fresh part of the nonces. */
  handed: number;
  /** A hit on it, or on another job with its extranonce, was a block: no second one can come of it. */
  isSpent: boolean;
};

/** Beginnings within a part of the nonces, each 2^40 nonces or more apart. */
const BEGINNINGS = 64n;

const anchorOf = ({ job: { header } }: PoolJob): Bytes => header.subarray(ANCHOR_ID_OFFSET, ANCHOR_ID_OFFSET + 48);

export class Crew {
  readonly #options: CrewOptions;
  readonly #dependencies: CrewDependencies;
  readonly #devices: Device[] = [];
  readonly #goodHits = new Map<Device, number>();
  readonly #jobs = new Map<number, KnownJob>();
  #number = 0;
  #current: KnownJob | undefined;
  #paused = false;
  #resting = false;
  #checking = 0;
  readonly #pace = new Pace();
  /** When the devices were given a harder target than the server's, if they have it still. */
  #easySince: number | undefined;

  constructor(options: CrewOptions, dependencies: CrewDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  get devices(): readonly Device[] {
    return this.#devices;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Hits that are being recomputed. */
  get checking(): number {
    return this.#checking;
  }

  /** Epochs that cost nothing to work on: every device has them, and so has the checker. */
  get epochs(): readonly number[] {
    const devices = this.#running();
    return this.#dependencies.checker.epochs.filter((epoch) => devices.every(({ epochs }) => epochs.includes(epoch)));
  }

  add(options: DeviceOptions, open: DeviceDependencies['open']): Device {
    const { now, after, note, onProgress } = this.#dependencies;
    const device = new Device(options, {
      open,
      now,
      after,
      note,
      ...(onProgress === undefined ? {} : { onProgress }),
      onHit: (from, hit) => void this.#onHit(from, hit),
      onStopped: () => this.#onStopped(),
    });
    this.#devices.push(device);
    if (this.#paused) device.pause();
    if (this.#resting) device.rest();
    void device.start();
    if (this.#current !== undefined) this.#hand(this.#current);
    return device;
  }

  #running(): Device[] {
    return this.#devices.filter((device) => device.stopped === undefined);
  }

  #onStopped(): void {
    if (this.#running().length === 0) this.#dependencies.onNoDevice();
    // The part of the nonces that it had is shared by the others from the next job on.
  }

  setJob(pool: PoolJob | undefined): void {
    if (pool === undefined) {
      this.#current = undefined;
      for (const device of this.#running()) device.setJob(undefined);
      return;
    }
    const same = this.#current?.pool;
    // A resumed session repeats its job: the search continues.
    if (
      same?.session === pool.session &&
      same.job.jobId === pool.job.jobId &&
      same.job.shareTarget === pool.job.shareTarget &&
      equalBytes(same.job.header, pool.job.header)
    )
      return;
    const header = Uint8Array.from(pool.job.header);
    header.set(pool.prefix, header.length - pool.prefix.length);
    const target = targetToBytes(pool.job.shareTarget);
    const number = ++this.#number;
    const job: KnownJob = {
      number,
      pool,
      header,
      target,
      seen: new Set(),
      handedWork: pool.work,
      handed: 0,
      isSpent: false,
    };
    if (pool.job.clean) this.#jobs.clear();
    this.#jobs.set(number, job);
    for (const old of this.#jobs.keys()) {
      if (this.#jobs.size <= CREW_DEFAULTS.jobsKept) break;
      this.#jobs.delete(old);
    }
    this.#current = job;
    this.#hand(job);
    void this.#prepareChecker(pool.job.epoch);
    this.#buildAhead(pool);
  }

  /** To every device at once; each one takes it up within a dispatch. */
  #hand(job: KnownJob): void {
    const devices = this.#running();
    if (devices.length === 0) return;
    const { number: id, pool, header } = job;
    const prefixBytes = pool.prefix.length;
    const beginning = BigInt(job.handed++) % BEGINNINGS;
    const work = this.#pace.workFor(pool.work);
    const target = work > pool.work ? targetToBytes(targetOfWork(work)) : job.target;
    job.handedWork = work;
    const parts = splitNonces({ from: 0n, to: freeNonces(prefixBytes) }, devices.length);
    for (const [i, device] of devices.entries()) {
      const { from, to } = parts[i] as SearchJob['nonces'];
      const nonces = { from: from + ((to - from) * beginning) / BEGINNINGS, to };
      device.setJob({ id, epoch: pool.job.epoch, header, target, prefixBytes, nonces });
    }
  }

  async #prepareChecker(epoch: number): Promise<void> {
    const { checker, note } = this.#dependencies;
    if (checker.epochs.includes(epoch)) return;
    try {
      await checker.prepare(epoch);
    } catch (error) {
      note('error', 'hits cannot be recomputed', { epoch, error });
    }
  }

  #buildAhead({ job, height }: PoolJob): void {
    const { allowsAhead, now } = this.#dependencies;
    if (allowsAhead === undefined) return;
    const left = POW_EPOCH_CUTS - (height % POW_EPOCH_CUTS);
    const next = job.epoch + 1;
    if (left > CREW_DEFAULTS.aheadCuts) return;
    const devices = this.#running().filter((device) => device.canBuildAhead(next, now()));
    if (devices.length === 0 || !allowsAhead(next)) return;
    for (const device of devices) device.buildAhead(next, now());
    void this.#prepareChecker(next);
  }

  async #onHit(device: Device, hit: Hit): Promise<void> {
    const job = this.#jobs.get(hit.jobId);
    if (job === undefined) {
      device.shares.stale++;
      this.#dependencies.onStale();
      return;
    }
    if (this.#pace.hit(job.handedWork) && this.#current !== undefined) this.#hand(this.#current);
    const nonce = toHex(hit.nonce);
    if (job.seen.has(nonce)) return;
    // The target is so easy that hits arrive faster than they can be checked: unchecked ones are not sent.
    if (this.#checking >= CREW_DEFAULTS.mostChecking) {
      device.shares.lost++;
      return;
    }
    job.seen.add(nonce);
    const right = await this.#recompute(device, job, hit);
    if (right === true && meetsTarget(hit.hash, job.header.subarray(TARGET_OFFSET, TARGET_OFFSET + 32)))
      this.#spend(job);
    if (right === undefined) {
      device.shares.lost++;
      return;
    }
    if (device.stopped !== undefined) return;
    if (!right) return this.#onBadHit(device);
    this.#goodHits.set(device, (this.#goodHits.get(device) ?? 0) + 1);
    this.#dependencies.onShare({
      session: job.pool.session,
      jobId: job.pool.job.jobId,
      nonce: hit.nonce,
      work: job.pool.work,
      hashWork: workOfHash(hit.hash),
      device: device.number,
    });
  }

  /**
   * A block: its body is good for no other. Where the server gave a spare job (S57), the search goes on there at once;
   * else on the old one, whose hits are still shares, until the server's next job comes.
   */
  #spend(spent: KnownJob): void {
    const { session, job } = spent.pool;
    for (const known of this.#jobs.values())
      if (known.pool.session === session && equalBytes(known.pool.job.extranonce, job.extranonce)) known.isSpent = true;
    if (this.#current?.isSpent !== true) return;
    const spare = [...this.#jobs.values()].findLast(
      ({ pool, isSpent }) => pool.session === session && !isSpent && equalBytes(anchorOf(pool), anchorOf(spent.pool)),
    );
    if (spare === undefined) return;
    this.#current = spare;
    this.#hand(spare);
  }

  /** Undefined when it could not be computed: such a hit is not sent, and does not count against the device. */
  async #recompute(device: Device, { header, target, pool }: KnownJob, hit: Hit): Promise<boolean | undefined> {
    const full = Uint8Array.from(header);
    const prefixed = equalBytes(hit.nonce.subarray(8 - pool.prefix.length), pool.prefix);
    if (hit.nonce.length !== 8 || !prefixed) return false;
    full.set(hit.nonce, NONCE_OFFSET);
    this.#checking++;
    try {
      // Its cache may still be in the making when the first hits of a new epoch come.
      if (!this.#dependencies.checker.epochs.includes(pool.job.epoch))
        await this.#dependencies.checker.prepare(pool.job.epoch);
      const hash = await this.#dependencies.checker.hash(pool.job.epoch, full);
      return meetsTarget(hash, target) && equalBytes(hash, hit.hash);
    } catch (error) {
      this.#dependencies.note('error', 'a hit could not be recomputed', { device: device.label, error });
      return undefined;
    } finally {
      this.#checking--;
    }
  }

  #onBadHit(device: Device): void {
    const good = this.#goodHits.get(device) ?? 0;
    if (good >= CREW_DEFAULTS.forgivenAfter) device.shares.bad = 0;
    this.#goodHits.set(device, 0);
    device.shares.bad++;
    const limit = this.#options.badHits ?? CREW_DEFAULTS.badHits;
    this.#dependencies.note('warn', 'a hit was wrong and is not sent', {
      device: device.label,
      bad: device.shares.bad,
    });
    if (device.shares.bad >= limit)
      device.stop('device_bad_hits', `${device.shares.bad} of its hits were wrong: lower its clocks or replace it`);
  }

  pause(): void {
    this.#paused = true;
    for (const device of this.#running()) device.pause();
  }

  resume(): void {
    this.#paused = false;
    for (const device of this.#running()) device.resume();
  }

  /** For a throttle: its caller resumes the devices. */
  rest(): void {
    this.#resting = true;
    for (const device of this.#running()) device.rest();
  }

  work(): void {
    this.#resting = false;
    for (const device of this.#running()) device.work();
  }

  tick(now: number): void {
    for (const device of this.#devices) device.tick(now);
    this.#keepPace(now);
  }

  /** The server cannot take more shares. */
  tooManyShares(): void {
    this.#pace.refused();
  }

  #keepPace(now: number): void {
    const rates = this.#running().map((device) => device.rates(now).short);
    const rate = rates.includes(undefined) ? undefined : rates.reduce<number>((sum, one) => sum + (one ?? 0), 0);
    this.#pace.look(rate, this.#dependencies.waiting() + this.#checking);
    const job = this.#current;
    if (job !== undefined) {
      const wanted = this.#pace.workFor(job.pool.work);
      // Small changes wait for the next job: restarting a device every second wastes work.
      if (wanted > job.handedWork * 2n || wanted * 2n < job.handedWork) this.#hand(job);
    }
    this.#tellEasy(job, now);
  }

  /** For a server that learns the rate of the devices it is normal at first. */
  #tellEasy(job: KnownJob | undefined, now: number): void {
    if (job === undefined || job.handedWork <= job.pool.work) {
      this.#easySince = undefined;
      return;
    }
    this.#easySince ??= now;
    const level = now - this.#easySince < CREW_DEFAULTS.learnMillis ? 'info' : 'warn';
    this.#dependencies.note(level, 'the share target is far too easy: only the hardest shares are sent', {
      shareWork: job.pool.work,
      sentFrom: job.handedWork,
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#devices.map((device) => device.close()));
  }
}
