/**
 * The share sink of svc-proxy: every share that was accepted here is counted by rig, and those that meet the pool's
 * target go on to it. The rig has its answer before the pool has: what the pool says is counted beside it.
 */
import { Counters } from '../bridge/shares/counters.ts';
import type {
  AcceptedShare,
  BlockFate,
  FoundBlock,
  RefusedShare,
  ShareSink,
  WorkerEvent,
} from '../bridge/shares/sink.ts';
import type { Share, Verdict } from '../miner/client/session-events.ts';
import { shareIdentity } from '../protocol/books/share-identity.ts';
import { type Bytes, bigintFromBytesBE, toHex } from '../protocol/bytes.ts';
import { workOfTarget } from '../protocol/ledger/target.ts';
import { type ErrorReply, stratumError } from '../protocol/stratum/errors.ts';

export type RelayDependencies = {
  /** Whether there is a job whose shares can be sent. */
  readonly isServed: () => boolean;
  readonly send: (share: Share) => void;
  /** An accepted share of a rig, sent on or not. */
  readonly onWork: (work: bigint) => void;
};

export type RelayFigures = {
  readonly sent: number;
  readonly accepted: number;
  readonly stale: number;
  readonly lost: number;
  readonly rejected: Readonly<Record<string, number>>;
  readonly waiting: number;
  /** Of the accepted ones. */
  readonly work: bigint;
};

/** Shares remembered so that none is sent twice: many more than are found while a job lasts. */
const MAX_REMEMBERED = 16_384;

export class ShareRelay implements ShareSink {
  readonly counters = new Counters();
  readonly #unnamed: string;
  readonly #dependencies: RelayDependencies;
  /** The oldest first. */
  readonly #seen = new Set<string>();
  #sent = 0;
  #answered = 0;
  #work = 0n;
  readonly #verdicts: Record<Exclude<Verdict, 'rejected'>, number> = { accepted: 0, stale: 0, lost: 0 };
  readonly #rejected: Record<string, number> = {};

  /** `unnamed`: the name of rigs that logged in without one. */
  constructor(unnamed: string, dependencies: RelayDependencies) {
    this.#unnamed = unnamed;
    this.#dependencies = dependencies;
  }

  get accepting(): boolean {
    return this.#dependencies.isServed();
  }

  get figures(): RelayFigures {
    const rejected = { ...this.#rejected };
    return { sent: this.#sent, ...this.#verdicts, rejected, waiting: this.#sent - this.#answered, work: this.#work };
  }

  async shares(shares: readonly AcceptedShare[]): Promise<void> {
    await this.counters.shares(shares);
    for (const share of shares) {
      this.#dependencies.onWork(share.work);
      if (share.passed === undefined || !this.#isNew(share)) continue;
      this.#sent++;
      this.#dependencies.send(this.#shareOf(share, share.passed));
    }
  }

  /**
   * A connection knows its own shares alone, and after many logins two of them may have one prefix. The pool would count a
   * duplicate against the whole farm.
   */
  #isNew({ headerDigest, nonce }: AcceptedShare): boolean {
    const identity = toHex(shareIdentity(headerDigest, nonce));
    if (this.#seen.has(identity)) return false;
    this.#seen.add(identity);
    const [oldest] = this.#seen;
    if (this.#seen.size > MAX_REMEMBERED && oldest !== undefined) this.#seen.delete(oldest);
    return true;
  }

  #shareOf({ worker, nonce }: AcceptedShare, { origin, generation }: NonNullable<AcceptedShare['passed']>): Share {
    const { session, jobId, shareTarget, firstGeneration } = origin;
    const work = workOfTarget(bigintFromBytesBE(shareTarget));
    const plain = { session, jobId, nonce, work, device: 0 };
    if (firstGeneration === null) return plain;
    return { ...plain, farm: { generation, rig: worker === '' ? this.#unnamed : worker } };
  }

  /** What became of a share that was sent on. */
  verdict({ work }: Pick<Share, 'work'>, verdict: Verdict, error: ErrorReply | undefined): void {
    this.#answered++;
    if (verdict === 'accepted') this.#work += work;
    if (verdict !== 'rejected') this.#verdicts[verdict]++;
    else {
      const name = error === undefined ? 'internal' : stratumError(error.code).name;
      this.#rejected[name] = (this.#rejected[name] ?? 0) + 1;
    }
  }

  refused(shares: readonly RefusedShare[]): void {
    this.counters.refused(shares);
  }

  async block(block: FoundBlock): Promise<void> {
    await this.counters.block(block);
  }

  async blockFate(_blockId: Bytes, _fate: BlockFate): Promise<void> {}

  worker(event: WorkerEvent): void {
    this.counters.worker(event);
  }
}
