/**
 * The share sink of svc-proxy: every share that was accepted here is counted by rig, and those that meet the pool's
 * target go on to it. The rig has its answer before the pool has: what the pool says is counted beside it.
 */
import { Counters } from '../bridge/shares/counters.ts';
import type {
  AcceptedShare,
  BlockFate,
  FoundBlock,
  Ownership,
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
  /** `account`: whose session it belongs to (bridge/nodes/origin-job.ts). */
  readonly send: (share: Share, account: string | undefined) => void;
  /** An accepted share of a rig, sent on or not. */
  readonly onWork: (work: bigint, account: Bytes) => void;
  /** Takes in rigs of this address, or says why not; absent where all work for one. */
  readonly admit?: (account: Bytes) => string | undefined;
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
  readonly blocks: number;
};

/** Shares remembered so that none is sent twice: many more than are found while a job lasts. */
const MAX_REMEMBERED = 16_384;

export class ShareRelay implements ShareSink {
  readonly counters = new Counters();
  /** Where it is there, no login is answered before `refusal` was asked; there is nothing to wait for. */
  readonly own?: () => Promise<void>;
  readonly #unnamed: string;
  readonly #dependencies: RelayDependencies;
  /** The oldest first. */
  readonly #seen = new Set<string>();
  #sent = 0;
  #work = 0n;
  #blocks = 0;
  /** Whose they are, of shares that were sent on. */
  readonly #finders = new WeakMap<Pick<Share, 'work'>, AcceptedShare>();
  readonly #verdicts: Record<Exclude<Verdict, 'rejected'>, number> = { accepted: 0, stale: 0, lost: 0 };
  readonly #rejected: Record<string, number> = {};

  /** `unnamed`: the name of rigs that logged in without one. */
  constructor(unnamed: string, dependencies: RelayDependencies) {
    this.#unnamed = unnamed;
    this.#dependencies = dependencies;
    if (dependencies.admit !== undefined) this.own = async () => undefined;
  }

  get accepting(): boolean {
    return this.#dependencies.isServed();
  }

  get figures(): RelayFigures {
    const rejected = { ...this.#rejected };
    const answers = [...Object.values(this.#verdicts), ...Object.values(rejected)];
    const waiting = answers.reduce((left, count) => left - count, this.#sent);
    return { sent: this.#sent, ...this.#verdicts, rejected, waiting, work: this.#work, blocks: this.#blocks };
  }

  refusal({ account }: Pick<Ownership, 'account'>): string | undefined {
    return this.#dependencies.admit?.(account);
  }

  async shares(shares: readonly AcceptedShare[]): Promise<void> {
    await this.counters.shares(shares);
    for (const share of shares) {
      this.#dependencies.onWork(share.work, share.account);
      if (share.passed === undefined || !this.#isNew(share)) continue;
      this.#sent++;
      const passedOn = this.#shareOf(share, share.passed);
      this.#finders.set(passedOn, share);
      this.#dependencies.send(passedOn, share.passed.origin.account);
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

  #shareOf(
    { worker, nonce, hashWork }: AcceptedShare,
    { origin, generation }: NonNullable<AcceptedShare['passed']>,
  ): Share {
    const { session, jobId, shareTarget, firstGeneration } = origin;
    const work = workOfTarget(bigintFromBytesBE(shareTarget));
    const plain = { session, jobId, nonce, work, hashWork, device: 0 };
    if (firstGeneration === null) return plain;
    return { ...plain, farm: { generation, rig: worker === '' ? this.#unnamed : worker } };
  }

  /** What became of a share that was sent on; `isBlock` by the word of the pool. */
  verdict(share: Pick<Share, 'work'>, verdict: Verdict, error: ErrorReply | undefined, isBlock = false): void {
    const finder = this.#finders.get(share);
    if (isBlock) this.#blocks++;
    if (isBlock && finder !== undefined) this.counters.foundBlock(finder);
    if (verdict === 'accepted') this.#work += share.work;
    if (verdict !== 'rejected') this.#verdicts[verdict]++;
    else {
      const name = error === undefined ? 'internal' : stratumError(error.code).name;
      this.#rejected[name] = (this.#rejected[name] ?? 0) + 1;
    }
  }

  refused(shares: readonly RefusedShare[]): void {
    this.counters.refused(shares);
  }

  /** A block is counted when the pool says that it is one. */
  async block(_block: FoundBlock): Promise<void> {}

  async blockFate(_blockId: Bytes, _fate: BlockFate): Promise<void> {}

  worker(event: WorkerEvent): void {
    // One that was resumed was not asked about before.
    if (event.kind === 'joined') this.refusal(event);
    this.counters.worker(event);
  }
}
