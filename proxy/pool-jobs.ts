/**
 * The template source of svc-proxy: each job of the pool is a template that rigs get their headers from. Blocks need no
 * way of their own: a hash that is one is a share too, and goes to the pool as such.
 */

import type { TemplatePart } from '../bridge/nodes/origin-job.ts';
import type { CheckedTemplate } from '../bridge/nodes/template.ts';
import type { NodeAnswer, NodeFigures, Upstream, UpstreamEvents } from '../bridge/nodes/upstream.ts';
import type { PoolJob } from '../miner/client/session-events.ts';
import { toHex } from '../protocol/bytes.ts';
import { decodeHeader, registrationWindowEnd } from '../protocol/ledger/header.ts';
import { targetToBytes } from '../protocol/ledger/target.ts';
import { type NetworkName, POW_EPOCH_CUTS } from '../protocol/network.ts';
import { type Bucket, type BucketRate, fullBucket, take } from '../runtime/clients/token-bucket.ts';
import type { MonotonicClock } from '../runtime/clock/clock.ts';

const NOTHING = new Uint8Array(0);
/** Jobs of one session that go to rigs. Each costs a job for every rig, and is remembered with it: a pool has one in a few seconds, and one that sends them without end must not decide what that costs here. */
const PACE: BucketRate = { perSecond: 2, burst: 20 };
/** Of these, those that have no header of the job before: each is kept for every rig, for minutes. A pool has one after a login, with another share target, or after a block. */
const RENEWALS: BucketRate = { perSecond: 1 / 4, burst: 20 };

export function templateOf(
  { job, farm, session }: PoolJob,
  network: NetworkName,
  part?: TemplatePart,
): CheckedTemplate {
  const headerBytes = farm?.header ?? job.header;
  const header = decodeHeader(headerBytes);
  return {
    header,
    headerBytes,
    anchorHeight: header.anchorHeight,
    registrationWindowEnd: registrationWindowEnd(header.anchorHeight),
    // Only the pool knows the body, and only the pool needs it.
    body: { payout: job.payout, extranonce: NOTHING, parents: [], transactions: [] },
    leaves: [],
    epoch: job.epoch,
    // A development chain may have epochs of any length.
    epochLength: network === 'development' ? undefined : POW_EPOCH_CUTS,
    fees: 0n,
    origin: {
      session,
      jobId: job.jobId,
      ...(part === undefined ? {} : { account: part.account }),
      extranonceHead: farm?.extranonceHead ?? job.extranonce,
      firstGeneration: farm?.firstGeneration ?? null,
      shareTarget: targetToBytes(job.shareTarget),
    },
  };
}

/** What went to rigs of a session's jobs. */
type Told = { readonly pace: Bucket; readonly renewals: Bucket; readonly headers: string };

const headersOf = ({ job, farm }: PoolJob): string =>
  farm === undefined ? toHex(job.extranonce) : `${toHex(farm.extranonceHead)} ${farm.firstGeneration}`;

/** The newest job of a session at the pool. */
type Newest = {
  readonly job: PoolJob;
  readonly height: number;
  /** Of the highest anchor: a pool may draw older ones. */
  readonly cutId: string;
  readonly part: TemplatePart | undefined;
};

export class PoolJobs implements Upstream {
  readonly #network: NetworkName;
  /** The part of the proxy's own session, where there are others. */
  readonly #own: TemplatePart | undefined;
  readonly #now: MonotonicClock;
  readonly #told = new Map<number, Told>();
  /** Draws whose newest job has not gone to rigs yet, and whether it or one before it that did not go was clean. */
  readonly #late = new Map<number, boolean>();
  #events: UpstreamEvents | null = null;
  #job: PoolJob | undefined;
  /** By their draws, also after a session has ended. */
  readonly #newest = new Map<number, Newest>();

  constructor(network: NetworkName, now: MonotonicClock, own?: TemplatePart) {
    this.#network = network;
    this.#now = now;
    this.#own = own;
  }

  /** That of the proxy's own session. */
  get current(): PoolJob | undefined {
    return this.#job;
  }

  /** None: the pool is away, and shares on its last job could not be sent any more. */
  set(job: PoolJob | undefined, part = this.#own): void {
    const isOwn = part === this.#own;
    const draw = part?.draw ?? 0;
    const before = this.#newest.get(draw);
    if (isOwn) this.#job = job;
    if (job === undefined) {
      this.#late.delete(draw);
      if (isOwn) this.#events?.healthy(false);
      else if (before !== undefined && part !== undefined) {
        this.#newest.delete(draw);
        const nothing = { templates: [], headHeight: before.height, clean: true, node: 'pool' };
        this.#events?.templates({ ...nothing, anchors: 'newest', part });
      }
      return;
    }
    // Jobs of another session cannot be submitted in this one.
    const clean = job.job.clean || before?.job.session !== job.session;
    const own = { height: job.height, cutId: toHex(decodeHeader(job.job.header).anchorId) };
    const { height, cutId } = !clean && before !== undefined && before.height > own.height ? before : own;
    this.#events?.told(cutId);
    const newest = { job, height, cutId, part };
    this.#newest.set(draw, newest);
    this.#late.set(draw, clean || this.#late.get(draw) === true);
    this.tick();
  }

  /** Every second or so: of the jobs that came too fast the newest goes to rigs. */
  tick(): void {
    const now = this.#now();
    for (const [draw, clean] of this.#late) {
      const newest = this.#newest.get(draw);
      if (newest === undefined) continue;
      const full: Told = { pace: fullBucket(PACE, now), renewals: fullBucket(RENEWALS, now), headers: '' };
      const told = this.#told.get(draw) ?? full;
      const headers = headersOf(newest.job);
      const pace = take(told.pace, PACE, now);
      const renewals = headers === told.headers ? told.renewals : take(told.renewals, RENEWALS, now);
      if (pace === undefined || renewals === undefined) continue;
      this.#told.set(draw, { pace, renewals, headers });
      this.#late.delete(draw);
      this.#tell(newest, clean);
    }
  }

  #tell({ job, height, cutId, part }: Newest, clean: boolean): void {
    this.#events?.templates({
      templates: [templateOf(job, this.#network, part)],
      headHeight: height,
      clean,
      node: 'pool',
      anchors: 'newest',
      cutId,
      ...(part === undefined ? {} : { part }),
    });
    if (part === this.#own) this.#events?.healthy(true);
  }

  start(events: UpstreamEvents): void {
    this.#events = events;
    for (const newest of this.#newest.values())
      if (newest.part !== this.#own || this.#job !== undefined) this.#tell(newest, true);
  }

  async submit(): Promise<readonly NodeAnswer[]> {
    return [];
  }

  figures(): readonly NodeFigures[] {
    const isThere = this.#job !== undefined;
    const height = this.#newest.get(0)?.height ?? 0;
    return [{ name: 'pool', healthy: isThere, serving: isThere, disagrees: false, height }];
  }

  async close(): Promise<void> {
    this.#events = null;
  }
}
