/** A session at the pool for one address: its client, and the share work it asks for. */
import type { Verifier } from '../kernels/verifier.ts';
import type { EpochAllowance, Moment } from '../miner/client/epoch-allowance.ts';
import type { BooksOfPools } from '../miner/client/link-books.ts';
import { PoolClient, type PoolClientDependencies, systemClock } from '../miner/client/pool-client.ts';
import type { PoolJob, Share, Verdict } from '../miner/client/session-events.ts';
import { refusal } from '../miner/miner-error.ts';
import type { PoolOption } from '../miner/options.ts';
import type { Bytes } from '../protocol/bytes.ts';
import type { NetworkName } from '../protocol/network.ts';
import type { ErrorReply } from '../protocol/stratum/errors.ts';
import { PREFIX_MAX_BYTES } from '../protocol/stratum/nonce.ts';
import { UpstreamWork } from './upstream-work.ts';

export type PoolLinkOptions = {
  readonly network: NetworkName;
  readonly pools: readonly PoolOption[];
  readonly address: string;
  readonly account: Bytes;
  readonly worker: string;
  readonly agent: string;
  readonly pinned: Bytes | undefined;
  readonly rigs: number;
  readonly sharesPerSecond: number;
};

export type PoolLinkDependencies = Pick<PoolClientDependencies, 'connect' | 'note'> & {
  readonly verifier: Verifier;
  readonly allowance: EpochAllowance;
  readonly moment: () => Moment;
  readonly onJob: (job: PoolJob | undefined, pool: number | undefined) => void;
  /** `blockId`: the share was a block. */
  readonly onVerdict: (share: Share, verdict: Verdict, error: ErrorReply | undefined, blockId?: Bytes) => void;
  readonly books?: BooksOfPools;
};

/** A rig's own two bytes come before it. */
const LONGEST_PREFIX = PREFIX_MAX_BYTES - 2;

export class PoolLink {
  readonly client: PoolClient;
  readonly #work: UpstreamWork;
  readonly #dependencies: PoolLinkDependencies;
  readonly #waiting = new Set<Share>();
  #job: PoolJob | undefined;

  constructor(options: PoolLinkOptions, dependencies: PoolLinkDependencies) {
    const { now } = systemClock;
    const { verifier, allowance, moment, books } = dependencies;
    this.#dependencies = dependencies;
    this.#work = new UpstreamWork(options.sharesPerSecond, now());
    this.client = new PoolClient(
      {
        pools: options.pools.map(({ endpoint }) => endpoint),
        session: {
          network: options.network,
          address: options.address,
          own: options.account,
          worker: options.worker,
          password: () => this.#work.password(this.#job?.work, now()),
          agent: options.agent,
          tag: '',
          pinned: options.pinned,
          farmRigs: options.rigs,
        },
      },
      {
        onJob: (job, pool) => {
          this.#job = job;
          if (job !== undefined) this.#work.most = job.submitsPerSecond ?? Number.POSITIVE_INFINITY;
          dependencies.onJob(job, pool);
        },
        onVerdict: (share, verdict, error, blockId) => {
          this.#waiting.delete(share);
          dependencies.onVerdict(share, verdict, error, blockId);
        },
        ...(books === undefined ? {} : { books }),
      },
      {
        ...systemClock,
        connect: dependencies.connect,
        note: dependencies.note,
        refusesJob: (pool, { job: { epoch }, height, farm, prefix }) =>
          farm === undefined && prefix.length > LONGEST_PREFIX
            ? refusal('pool_refused_login', 'the server leaves no part of the nonce for rigs: it is a proxy itself')
            : allowance.refuses({ pool: options.pools[pool]?.text ?? '', epoch, height }, verifier.epochs, moment()),
      },
    );
  }

  get job(): PoolJob | undefined {
    return this.#job;
  }

  /** Hashes per second of its rigs. */
  get rate(): number {
    return this.#work.rate(systemClock.now());
  }

  /** A share of a rig was accepted here. */
  worked(work: bigint): void {
    this.#work.add(work, systemClock.now());
  }

  submit(share: Share): void {
    this.#waiting.add(share);
    this.client.submit(share);
  }

  /** Every second or so. */
  tick(): void {
    if (this.#job !== undefined && this.#work.isDue(this.#job.work, systemClock.now())) this.client.relogin();
  }

  /** What has no answer yet will have none. */
  stop(): void {
    this.client.stop();
    this.#job = undefined;
    for (const share of this.#waiting) this.#dependencies.onVerdict(share, 'lost', undefined);
    this.#waiting.clear();
  }
}
