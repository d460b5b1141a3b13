/**
 * From pending shares to verdicts: all that came in one turn of the event loop are hashed as one batch off the loop. A
 * possible block goes to the nodes before anything is accounted; a hash that fails is computed once more before it
 * counts against the miner; accepted shares are answered once the sink has stored them. A fault of the server never
 * counts against the miner: a share that was not judged may be sent again.
 */
import { KernelError } from '../../kernels/kernel-error.ts';
import type { Verifier } from '../../kernels/verifier.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { blockId, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { meetsTarget, workOfHash } from '../../protocol/ledger/target.ts';
import { CODE, type RefusalCode } from '../../protocol/stratum/errors.ts';
import { headerDigestOf } from '../session/bodies.ts';
import type { PendingShare, Submitter } from '../session/pending-share.ts';
import type { Candidate, Hub, JudgedShare } from '../threads/hub.ts';

type Hashing = Pick<Verifier, 'hashMany'>;
type Accepted = { readonly share: PendingShare; readonly judged: JudgedShare; readonly blockId: Bytes | null };

/**
 * How often, and how many times, shares within a connection's own budget are offered to a verifier whose queue is full.
 */
const BUSY_MILLIS = 50;
const BUSY_TRIES = 100;

export interface ShareCheckDependencies {
  readonly verifier: Hashing;
  readonly hub: Pick<Hub, 'shares' | 'block'>;
  /** Runs after the reads of this turn; setImmediate outside tests. */
  readonly soon: (run: () => void) => void;
  /** The verdicts of a batch are written: connections may be flushed. */
  readonly onSpoken: () => void;
  readonly onFault: (error: unknown) => void;
}

export class ShareCheck {
  readonly #dependencies: ShareCheckDependencies;
  #waiting: PendingShare[] = [];
  #scheduled = false;
  #open = 0;
  #idle: (() => void)[] = [];

  constructor(dependencies: ShareCheckDependencies) {
    this.#dependencies = dependencies;
  }

  /** Shares that have no verdict yet. */
  get open(): number {
    return this.#open;
  }

  add(share: PendingShare): void {
    this.#open++;
    this.#waiting.push(share);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#dependencies.soon(() => this.#start());
  }

  /** Resolves when every share added so far has its verdict. */
  idle(): Promise<void> {
    if (this.#open === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #start(): void {
    this.#scheduled = false;
    const shares = this.#waiting;
    this.#waiting = [];
    const first = shares[0];
    if (first === undefined) return;
    if (shares.every((share) => share.template.epoch === first.template.epoch)) return void this.#batch(shares, false);
    // One per epoch; around a change of epoch there are two.
    for (const group of Map.groupBy(shares, (share) => share.template.epoch).values()) void this.#batch(group, false);
  }

  async #batch(shares: readonly PendingShare[], again: boolean, tries = BUSY_TRIES): Promise<void> {
    const headers = headersOf(shares);
    let hashes: Bytes[];
    try {
      hashes = await this.#dependencies.verifier.hashMany((shares[0] as PendingShare).template.epoch, headers);
    } catch (error) {
      return this.#failed(shares, error, again, tries);
    }
    const accepted: Accepted[] = [];
    const above: PendingShare[] = [];
    const finders: Submitter[] = [];
    for (let i = 0; i < shares.length; i++) {
      const share = shares[i] as PendingShare;
      try {
        const verdict = this.#judge(share, hashes[i] as Bytes, headers[i] as Bytes);
        if (verdict === 'above') above.push(share);
        else if (verdict !== 'refused') accepted.push(verdict);
        if (typeof verdict === 'object' && verdict.blockId !== null) finders.push(share.session);
      } catch (error) {
        this.#open--;
        share.session.defect(error);
      }
    }
    for (const session of finders) this.#over(session, () => session.renew());
    if (above.length > 0)
      if (again) for (const share of above) this.#refuse(share, CODE.above_target);
      else void this.#batch(above, true);
    if (accepted.length > 0) await this.#account(accepted);
    this.#spoken();
  }

  #judge(share: PendingShare, hash: Bytes, header: Bytes): Accepted | 'above' | 'refused' {
    const { template, session } = share;
    const terms = template.termsFor(share.terms.shareWork);
    if (!meetsTarget(hash, terms.target)) return 'above';
    const isBlock = meetsTarget(hash, template.target) && session.spend(share.terms);
    if (!isBlock && share.refusal !== null) {
      this.#refuse(share, share.refusal);
      return 'refused';
    }
    const judged: JudgedShare = {
      member: session.memberOf(share),
      serial: template.serial,
      generation: share.terms.generation,
      work: terms.work,
      hashWork: workOfHash(hash),
      cutHeight: template.cutHeight,
      headerDigest: headerDigestOf(session.bodyOf(share.terms, template), template.serial, header),
      nonce: share.nonce,
      atMillis: share.atMillis,
      isPassed: template.origin !== undefined && meetsTarget(hash, template.origin.shareTarget),
    };
    if (!isBlock) return { share, judged, blockId: null };
    const candidate = candidateOf(share, judged, header.slice());
    this.#dependencies.hub.block(candidate);
    return { share, judged, blockId: candidate.blockId };
  }

  async #account(accepted: readonly Accepted[]): Promise<void> {
    try {
      await this.#dependencies.hub.shares(accepted.map(({ judged }) => judged));
    } catch (error) {
      this.#dependencies.onFault(error);
      for (const { share } of accepted) this.#refuse(share, CODE.not_ready, true);
      return;
    }
    for (const { share, judged, blockId: found } of accepted) {
      this.#open--;
      this.#over(share.session, () => share.session.accepted(share, judged.work, found));
    }
  }

  #failed(shares: readonly PendingShare[], error: unknown, again: boolean, tries: number): void {
    const isBusy = error instanceof KernelError && error.code === 'kernel_busy';
    if (!isBusy) this.#dependencies.onFault(error);
    // Shares within the connection's own budget are not refused because of load by others: they are offered again.
    const owed = isBusy && tries > 0 ? shares.filter(({ isOwed }) => isOwed) : [];
    if (owed.length > 0) setTimeout(() => void this.#batch(owed, again, tries - 1), BUSY_MILLIS);
    for (const share of shares)
      if (owed.length > 0 && share.isOwed) continue;
      else if (isBusy) this.#refuse(share, CODE.too_many_requests, true, 'the server is busy; send it again');
      else this.#refuse(share, CODE.internal, true);
    this.#spoken();
  }

  #refuse(share: PendingShare, code: RefusalCode, again = false, message?: string): void {
    this.#open--;
    this.#over(share.session, () => share.session.refused(share, code, again, message));
  }

  #over(session: Submitter, run: () => void): void {
    try {
      run();
    } catch (error) {
      session.defect(error);
    }
  }

  #spoken(): void {
    this.#dependencies.onSpoken();
    if (this.#open > 0) return;
    const waiting = this.#idle;
    this.#idle = [];
    for (const resolve of waiting) resolve();
  }
}

/** One allocation for the whole batch, to keep garbage collection cheap. */
function headersOf(shares: readonly PendingShare[]): Uint8Array[] {
  const all = new Uint8Array(HEADER_BYTES * shares.length);
  return shares.map(({ session, template, terms, nonce }, i) => {
    const header = all.subarray(HEADER_BYTES * i, HEADER_BYTES * (i + 1));
    template.putHeader(header, session.bodyOf(terms, template).rewardRoot, nonce);
    return header;
  });
}

function candidateOf(share: PendingShare, judged: JudgedShare, header: Bytes): Candidate {
  return {
    share: judged,
    serial: share.template.serial,
    payout: share.session.payout,
    extranonce: share.session.bodyOf(share.terms, share.template).extranonce,
    header,
    blockId: blockId(header),
  };
}
