/**
 * The part of a session after its login: jobs (jobs.ts), shares (submit.ts) and their verdicts, until it drains. Who
 * mines is known from the start, so nothing here has to ask whether there is a member or a job.
 */
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { CODE, type RefusalCode } from '../../protocol/stratum/errors.ts';
import type { FarmSubmit } from '../../protocol/stratum/farm.ts';
import type { WorkerStats } from '../../protocol/stratum/messages.ts';
import { hasPrefix } from '../../protocol/stratum/nonce.ts';
import { Farm } from '../farms/farm.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { StratumLimits } from '../options.ts';
import type { StratumService } from '../service.ts';
import type { Balance, Member } from '../threads/hub.ts';
import type { Fault } from './ban-score.ts';
import type { Body } from './bodies.ts';
import { drawOf } from './extranonce.ts';
import { serialOf } from './job-book.ts';
import type { Terms } from './job-log.ts';
import { Jobs, type JobsOwner, type RunNotes } from './jobs.ts';
import { type LoggedIn, noncePrefixOf } from './login.ts';
import type { PendingShare, Submitter } from './pending-share.ts';
import { runEntry, spentEntry } from './session-entries.ts';
import type { SessionRecord } from './session-record.ts';
import { judgeSubmit, type SubmitBudgets } from './submit.ts';
import type { SessionDesk, SessionHost } from './surroundings.ts';
import type { Tally } from './tally.ts';
import type { AnswerId } from './voice.ts';

/** Excess submits are not scored for this long after a share was accepted, or refused through the server's fault. */
const GOOD_FAITH_MILLIS = 10_000;
const UNUSED: SubmitBudgets = { submits: null, owed: null, late: null };
/** Shared by all sessions that no restart was in, which are most. */
const NOBODY: readonly Member[] = [];

type Submitted = {
  readonly id: AnswerId;
  readonly jobId: number;
  readonly nonce: Bytes;
  /** The terms of its job, and those of its header: in a farm they are those of its generation. */
  readonly job: Terms | undefined;
  readonly terms: Terms | undefined;
  readonly wrong: RefusalCode | null;
  readonly rig: string | null;
};

/** The rig of a farm whose share was refused, and whether one of it was accepted before. */
export type RefusedRig = { readonly worker: string; readonly hasWorked: boolean };

/** The session, as its mining part uses it. */
export interface MiningSession {
  readonly service: StratumService;
  readonly tally: Tally;
  /** Refuses a submit. */
  reject(id: AnswerId, code: RefusalCode, message?: string, scored?: boolean, rig?: RefusedRig): void;
  fault(fault: Fault): void;
  /** For a restart: notes what would be resumed then. */
  keep(): void;
}

export class Mining implements Submitter, RunNotes, JobsOwner {
  readonly id: string;
  readonly member: Member;
  readonly #prefix: number;
  readonly #session: MiningSession;
  readonly #desk: SessionDesk;
  readonly #host: SessionHost;
  readonly #jobs: Jobs;
  /** In hex, where each account has templates of its own. */
  readonly #account: string | null;
  #earlier = NOBODY;
  #budgets = UNUSED;
  /** Submits from before the resume that may be repeated, because their answers were lost. */
  #forgiven: number;
  /** When a share was last accepted, or refused through the server's fault; at first when it logged in. */
  servedMillis: number;
  isDraining = false;
  /** Null in a plain session. */
  farm: Farm | null = null;
  #limits: StratumLimits;
  /** Submits that are being verified. */
  pending = 0;

  constructor(session: MiningSession, desk: SessionDesk, host: SessionHost, miner: LoggedIn) {
    const { id, prefix, member, record, wishes } = miner;
    this.id = id;
    this.member = member;
    this.#prefix = prefix;
    this.#session = session;
    this.#desk = desk;
    this.#host = host;
    this.#limits = desk.limits;
    this.servedMillis = desk.now();
    this.#account = session.service.worksFor?.keepsAddresses === true ? toHex(member.account) : null;
    const start = { vardiff: record?.vardiff ?? null, jobs: record?.jobs ?? null, wishes };
    this.#jobs = new Jobs(desk, host, this, start, this);
    this.#forgiven = this.#jobs.log.judged;
  }

  // --- who it is --------------------------------------------------------------------------------------------------------

  get tag(): string {
    return this.member.tag;
  }

  get owner(): Bytes {
    return this.member.owner;
  }

  get payout(): Bytes {
    return this.#session.service.pool?.payout ?? this.member.account;
  }

  get draw(): number {
    return this.#account === null ? drawOf(this.owner) : this.#desk.partOf(this.#account);
  }

  /** All that it was announced as. */
  get members(): readonly Member[] {
    return [...this.present, ...this.#earlier];
  }

  /** All that it is seen as now: itself, and the rigs of a farm. */
  get present(): readonly Member[] {
    return [this.member, ...(this.farm?.members ?? NOBODY)];
  }

  /** The names that receipts may be for. */
  get workers(): Iterable<string> {
    if (this.farm === null) return [this.member.worker];
    const names = new Set(this.farm.names);
    for (const { worker } of this.present) names.add(worker);
    return names;
  }

  /** Under a name that it had before a restart it is another member. */
  memberOf({ terms: { owner }, rig }: Pick<PendingShare, 'terms' | 'rig'>): Member {
    if (rig !== null && this.farm !== null) return this.farm.memberOf(owner, rig, () => this.#newRig(owner, rig));
    if (owner === null) return this.member;
    const known = this.#earlier.find((each) => equalBytes(each.owner, owner));
    if (known !== undefined) return known;
    const { handle } = this.#desk.newNumbers(this.#session.service.mark);
    const member = { ...this.member, owner, handle };
    this.#earlier = [...this.#earlier, member];
    return member;
  }

  #newRig(owner: Bytes | null, worker: string): Member {
    const { handle } = this.#desk.newNumbers(this.#session.service.mark);
    const member = { ...this.member, owner: owner ?? this.owner, handle, worker };
    this.#host.rigJoined(member);
    return member;
  }

  // --- farms ------------------------------------------------------------------------------------------------------------

  /** From now on it is the session of a farm (S70). */
  beginFarm(rigs: number): Farm {
    const { limits } = this.#desk;
    const farm = new Farm(rigs, limits);
    this.farm = farm;
    this.#limits = { ...limits, submits: farm.submits };
    this.#jobs.farm(farm, this.#session.tally.accepted === 0);
    return farm;
  }

  // --- shares -----------------------------------------------------------------------------------------------------------

  submit(id: AnswerId, jobId: number, nonce: Bytes, now: number): void {
    const job = this.#jobs.log.find(jobId);
    const terms = job?.farm === null ? job : undefined;
    this.#submit(
      { id, jobId, nonce, job, terms, wrong: this.#hasPrefix(nonce) ? null : CODE.bad_nonce, rig: null },
      now,
    );
  }

  /** A share of a rig (S75): of the client only job, generation and nonce are believed. */
  farmSubmit(id: AnswerId, { jobId, generation, rig, nonce }: FarmSubmit, now: number): void {
    const found = this.#jobs.log.find(jobId);
    const job = found?.farm === null ? undefined : found;
    const terms = job === undefined ? undefined : this.#jobs.log.ofGeneration(job, generation);
    const name = this.farm?.nameOf(rig) ?? null;
    const wrong = terms === undefined ? CODE.internal : name === null ? CODE.not_authorized : null;
    this.#submit({ id, jobId, nonce, job, terms: terms ?? job, wrong, rig: name }, now);
  }

  #submit({ id, jobId, nonce, job, terms, wrong, rig }: Submitted, now: number): void {
    const desk = this.#desk;
    const jobs = this.#jobs;
    const serial = serialOf(jobId);
    const verdict = judgeSubmit({
      nowMillis: now,
      limits: this.#limits,
      budgets: this.#budgets,
      hasRoom: this.#host.mayVerify(now),
      isReady: desk.ready,
      terms,
      found: desk.shelf.find(serial, desk.headHeight, now),
      draw: terms?.owner == null ? jobs.draw : drawOf(terms.owner),
      wrong,
      known: terms === undefined ? 'fresh' : jobs.log.known(terms, serial, nonce),
    });
    this.#budgets = verdict.budgets;
    switch (verdict.kind) {
      case 'hash': {
        if (!verdict.isOwed) this.#host.verifies(now);
        jobs.log.judge(verdict.terms, serial, nonce, job);
        this.pending++;
        const { template, refusal, isOwed } = verdict;
        const atMillis = Math.floor(now);
        this.#host.check({ session: this, id, nonce, template, terms: verdict.terms, refusal, isOwed, atMillis, rig });
        return;
      }
      case 'excess':
        this.#host.exceeds();
        if (this.#isOwnExcess(now)) this.#session.fault('excess');
        this.#reject(id, rig, CODE.too_many_requests, 'more submits than one connection may send');
        return;
      case 'full':
        this.#reject(id, rig, CODE.too_many_requests, 'more shares on live jobs than one session may have');
        return;
      case 'again':
        this.#reject(id, rig, CODE.duplicate, undefined, this.#forgiven <= 0);
        this.#forgiven--;
        return;
      case 'busy':
        this.servedMillis = now;
        this.#reject(id, rig, verdict.code, 'the server is busy; send it again');
        return;
      case 'late':
      case 'wrong':
        this.#reject(id, rig, verdict.code);
        return;
      case 'unknown_job':
        this.#reject(id, rig, CODE.unknown_job);
        return;
    }
  }

  #hasPrefix(nonce: Bytes): boolean {
    const { nonceEnd } = this.#session.service;
    if (nonceEnd === undefined) return nonce[6] === this.#prefix >> 8 && nonce[7] === (this.#prefix & 0xff);
    return hasPrefix(nonce, noncePrefixOf(this.#prefix, nonceEnd));
  }

  #reject(id: AnswerId, rig: string | null, code: RefusalCode, message?: string, scored?: boolean): void {
    const sender = rig === null ? undefined : { worker: rig, hasWorked: this.farm?.hasWorked(rig) === true };
    this.#session.reject(id, code, message, scored, sender);
  }

  /**
   * Whether excess submits are the miner's fault. They are not while the server is still looking for its share work, or
   * while the block target is easier than its share work would be, or where the port has fixed it, as long as its shares are
   * accepted.
   */
  #isOwnExcess(now: number): boolean {
    const isServed = this.pending > 0 || !this.#desk.ready || now - this.servedMillis < GOOD_FAITH_MILLIS;
    return !isServed || (this.#jobs.isPaced && this.#session.service.fixedWork === undefined);
  }

  accepted(share: PendingShare, work: bigint, blockId: Bytes | null): void {
    this.pending--;
    this.#jobs.log.settle(share.terms);
    const { tally } = this.#session;
    tally.accept(work);
    this.#host.accepted(share.id, work, blockId);
    this.#host.works();
    if (tally.accepted === 1) this.#session.keep();
    const now = this.#desk.now();
    this.servedMillis = now;
    this.#jobs.accepted(work, now);
    this.retarget(now);
  }

  refused(share: PendingShare, code: RefusalCode, again: boolean, message?: string): void {
    this.pending--;
    this.#jobs.log.settle(share.terms);
    if (again) {
      this.#jobs.log.unjudge(share.terms, share.template.serial, share.nonce);
      this.servedMillis = this.#desk.now();
    }
    this.#reject(share.id, share.rig, code, message);
  }

  spend(terms: Terms): boolean {
    if (terms.isSpent) return false;
    terms.isSpent = true;
    if (this.#session.tally.accepted > 0) this.#host.note(() => spentEntry(terms.owner ?? this.owner, terms));
    return true;
  }

  takeGeneration(first: number): number | undefined {
    return this.#desk.takeGeneration(first, this.#account === null ? 0 : this.draw);
  }

  drawSteps(): number {
    return this.#desk.drawSteps();
  }

  bodyOf(terms: Terms, on: ServedTemplate): Body {
    return this.#jobs.bodyOf(terms, on);
  }

  defect(error: unknown): void {
    this.#host.defect(error);
  }

  // --- jobs -------------------------------------------------------------------------------------------------------------

  get isCurrent(): boolean {
    return this.#jobs.isCurrent;
  }

  offer(clean: boolean): void {
    this.#jobs.offer(clean);
  }

  /** A farm goes on with its next generation by itself (S72). */
  renew(): void {
    if (this.farm === null) this.#jobs.offer(false);
  }

  retarget(now: number): void {
    if (!this.isDraining) this.#jobs.retarget(now);
  }

  /** Once a minute or so: forgets what concerns only dead jobs. */
  forget(oldestSerial: number): void {
    this.#jobs.forget(oldestSerial);
    const gone = this.farm?.dropGone() ?? NOBODY;
    if (gone.length > 0) this.#host.rigsLeft(gone);
  }

  began(terms: Terms, jobId: number): void {
    if (this.#session.tally.accepted > 0) this.#host.note(() => runEntry(this.owner, terms, jobId));
  }

  // --- what it tells ----------------------------------------------------------------------------------------------------

  stats(balance: Balance | null): WorkerStats {
    return {
      ...this.#session.tally.state(),
      hashRate: BigInt(Math.round(this.#jobs.hashRate)),
      shareWork: this.#jobs.shareWork,
      pool: balance === null ? null : { pendingAtoms: balance.pending, paidAtoms: balance.paid },
    };
  }

  record(withSeen: boolean): Omit<SessionRecord, 'score' | 'bannedUntilMillis'> {
    // Each resume adds a body: one that reconnects again and again must not become larger and larger.
    this.#jobs.forget(this.#desk.shelf.oldest);
    const { service, owner, tag, account, worker } = this.member;
    return {
      id: this.id,
      bootId: this.#desk.bootId,
      service,
      owner,
      prefix: this.#prefix,
      tag,
      account,
      worker,
      vardiff: this.#jobs.vardiff,
      ...this.#session.tally.state(),
      jobs: this.#jobs.state(withSeen),
    };
  }
}
