/**
 * The template source of svc-proxy: each job of the pool is a template that rigs get their headers from. Blocks need no
 * way of their own: a hash that is one is a share too, and goes to the pool as such.
 */

import type { CheckedTemplate } from '../bridge/nodes/template.ts';
import type { NodeAnswer, NodeFigures, Upstream, UpstreamEvents } from '../bridge/nodes/upstream.ts';
import type { PoolJob } from '../miner/client/session-events.ts';
import { decodeHeader, registrationWindowEnd } from '../protocol/ledger/header.ts';
import { targetToBytes } from '../protocol/ledger/target.ts';
import { type NetworkName, POW_EPOCH_CUTS } from '../protocol/network.ts';

const NOTHING = new Uint8Array(0);

export function templateOf({ job, farm, session }: PoolJob, network: NetworkName): CheckedTemplate {
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
      extranonceHead: farm?.extranonceHead ?? job.extranonce,
      firstGeneration: farm?.firstGeneration ?? null,
      shareTarget: targetToBytes(job.shareTarget),
    },
  };
}

export class PoolJobs implements Upstream {
  readonly #network: NetworkName;
  #events: UpstreamEvents | null = null;
  #job: PoolJob | undefined;
  /** The session of the newest job, also after that has ended. */
  #session: string | undefined;
  #height = 0;

  constructor(network: NetworkName) {
    this.#network = network;
  }

  get current(): PoolJob | undefined {
    return this.#job;
  }

  /** None: the pool is away, and shares on its last job could not be sent any more. */
  set(job: PoolJob | undefined): void {
    this.#job = job;
    if (job === undefined) {
      this.#events?.healthy(false);
      return;
    }
    // Jobs of another session cannot be submitted in this one.
    const clean = job.job.clean || this.#session !== job.session;
    this.#session = job.session;
    this.#height = clean ? job.height : Math.max(this.#height, job.height);
    this.#tell(job, clean);
  }

  #tell(job: PoolJob, clean: boolean): void {
    this.#events?.templates({
      templates: [templateOf(job, this.#network)],
      headHeight: this.#height,
      clean,
      node: 'pool',
      anchors: 'newest',
    });
    this.#events?.healthy(true);
  }

  start(events: UpstreamEvents): void {
    this.#events = events;
    if (this.#job !== undefined) this.#tell(this.#job, true);
  }

  async submit(): Promise<readonly NodeAnswer[]> {
    return [];
  }

  figures(): readonly NodeFigures[] {
    const isThere = this.#job !== undefined;
    return [{ name: 'pool', healthy: isThere, serving: isThere, disagrees: false, height: this.#height }];
  }

  async close(): Promise<void> {
    this.#events = null;
  }
}
