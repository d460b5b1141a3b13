/**
 * A session as a state machine (docs/protocol/stratum.md, S50 to S59): login (login.ts), then jobs (jobs.ts) and shares
 * (submit.ts) until it drains. Requests and verdicts come in as calls, everything goes out through the host; time,
 * names and randomness come from the desk. So a recorded session can be replayed byte for byte, and tests need no
 * socket.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { bannedReply, CODE, errorReply, type RefusalCode } from '../../protocol/stratum/errors.ts';
import type { Authorize, Subscribe, WorkerStats } from '../../protocol/stratum/messages.ts';
import type { StratumService } from '../service.ts';
import type { Balance, Member } from '../threads/hub.ts';
import type { Fault } from './ban-score.ts';
import type { Body } from './bodies.ts';
import { Conduct, FAULTS } from './conduct.ts';
import { drawOf } from './extranonce.ts';
import { serialOf } from './job-book.ts';
import type { Terms } from './job-log.ts';
import { Jobs, type RunNotes } from './jobs.ts';
import { Login, type LoginState } from './login.ts';
import type { PendingShare, Submitter } from './pending-share.ts';
import { runEntry, sessionEntry, spentEntry } from './session-entries.ts';
import type { SessionRecord } from './session-record.ts';
import { judgeSubmit, type SubmitBudgets } from './submit.ts';
import type { SessionDesk, SessionHost } from './surroundings.ts';
import { Tally, type TallyState } from './tally.ts';
import type { AnswerId } from './voice.ts';

export type SessionState = Exclude<LoginState, 'finished'> | 'mining' | 'draining';

/** Excess submits are not scored for this long after a share was accepted, or refused through the server's fault. */
const GOOD_FAITH_MILLIS = 10_000;
const TOO_MANY_REQUESTS = 'more requests than one connection may send';
const UNUSED: SubmitBudgets = { submits: null, owed: null, late: null };

export class Session implements Submitter, RunNotes {
  readonly service: StratumService;
  readonly #desk: SessionDesk;
  readonly #host: SessionHost;
  readonly #login: Login;
  #jobs: Jobs | null = null;
  #isDraining = false;
  #isBanned = false;
  #budgets = UNUSED;
  readonly #conduct = new Conduct();
  /** Submits from before the resume that may be repeated, because their answers were lost. */
  #forgiven = 0;
  /** When a share was last accepted, or refused through the server's fault. */
  #servedMillis: number;
  readonly #tally = new Tally();
  /** Submits that are being verified. */
  pending = 0;
  lastActiveMillis: number;

  constructor(service: StratumService, desk: SessionDesk, host: SessionHost) {
    this.service = service;
    this.#desk = desk;
    this.#host = host;
    this.#login = new Login(service, desk, host, this);
    this.lastActiveMillis = desk.now();
    this.#servedMillis = this.lastActiveMillis;
  }

  get id(): string {
    return this.#login.id;
  }

  get state(): SessionState {
    const { state } = this.#login;
    return state !== 'finished' ? state : this.#isDraining ? 'draining' : 'mining';
  }

  get member(): Member | null {
    return this.#login.member;
  }

  get busy(): boolean {
    return this.#login.busy;
  }

  get work(): bigint {
    return this.#tally.work;
  }

  get tally(): TallyState {
    return this.#tally.state();
  }

  get isResumed(): boolean {
    return this.#login.isResumed;
  }

  get isMining(): boolean {
    return this.#login.state === 'finished';
  }

  get isPutOff(): boolean {
    return this.#login.isPutOff;
  }

  // --- login ------------------------------------------------------------------------------------------------------------

  subscribe(id: AnswerId, asked: Subscribe): void {
    if (this.#admit(id)) this.#login.subscribe(id, asked);
  }

  /** The session asked for, or null when it is unknown or too old. */
  resumed(record: SessionRecord | null): void {
    const banLeft = record === null ? 0 : this.#banLeft(record);
    if (banLeft > 0) {
      this.#login.busy = false;
      this.ban(banLeft);
      return;
    }
    this.#login.resumed(record);
    const kept = this.#login.record;
    if (kept === null) return;
    this.#tally.restore(kept);
    this.#conduct.score = kept.score;
  }

  #banLeft(record: SessionRecord): number {
    return Math.ceil(record.bannedUntilMillis - this.#desk.now());
  }

  authorize(id: AnswerId, asked: Authorize): void {
    if (!this.#admit(id)) return;
    this.#login.authorize(id, asked);
    if (this.#login.state === 'authorized' && !this.#login.busy) this.owned();
  }

  /** The sink has registered the miner: from now on the connection may mine. */
  owned(): void {
    const login = this.#login;
    if (!login.owned()) return;
    const banLeft = this.#host.banLeft((login.member as Member).account);
    if (banLeft > 0) {
      this.ban(banLeft);
      return;
    }
    const { record, wishes } = login;
    const start = { vardiff: record?.vardiff ?? null, jobs: record?.jobs ?? null, wishes };
    this.#jobs = new Jobs(this.#desk, this.#host, login, start, this);
    login.record = null;
    this.#forgiven = this.#jobs.log.judged;
    this.#host.joined();
    login.answerAuthorize();
    this.offer(!login.isResumed);
    this.keep();
  }

  /** The sink could not register the miner now. */
  notOwned(): void {
    this.#login.notOwned();
  }

  // --- shares -----------------------------------------------------------------------------------------------------------

  submit(id: AnswerId, jobId: number, nonce: Bytes): void {
    const desk = this.#desk;
    const now = desk.now();
    this.lastActiveMillis = now;
    const jobs = this.#jobs;
    if (jobs === null) {
      const isConnected = this.#login.state === 'connected';
      if (!this.#takeRequest(now)) this.#reject(id, CODE.too_many_requests, TOO_MANY_REQUESTS);
      else this.#reject(id, isConnected ? CODE.not_subscribed : CODE.not_authorized);
      return;
    }
    const serial = serialOf(jobId);
    const terms = jobs.log.find(jobId);
    const { prefix } = this.#login;
    const verdict = judgeSubmit({
      nowMillis: now,
      limits: desk.limits,
      budgets: this.#budgets,
      hasRoom: this.#host.mayVerify(now),
      isReady: desk.ready,
      terms,
      found: desk.shelf.find(serial, desk.headHeight, now),
      draw: terms?.owner == null ? jobs.draw : drawOf(terms.owner),
      hasPrefix: nonce[6] === prefix >> 8 && nonce[7] === (prefix & 0xff),
      known: terms === undefined ? 'fresh' : jobs.log.known(terms, serial, nonce),
    });
    this.#budgets = verdict.budgets;
    switch (verdict.kind) {
      case 'hash': {
        if (!verdict.isOwed) this.#host.verifies(now);
        jobs.log.judge(verdict.terms, serial, nonce);
        this.pending++;
        const { template, refusal, isOwed } = verdict;
        const atMillis = Math.floor(now);
        this.#host.check({ session: this, id, nonce, template, terms: verdict.terms, refusal, isOwed, atMillis });
        return;
      }
      case 'excess':
        this.#host.exceeds();
        if (this.#isOwnExcess(jobs, now)) this.fault('excess');
        this.#reject(id, CODE.too_many_requests, 'more submits than one connection may send');
        return;
      case 'full':
        this.#reject(id, CODE.too_many_requests, 'more shares on live jobs than one session may have');
        return;
      case 'again':
        this.#reject(id, CODE.duplicate, undefined, this.#forgiven <= 0);
        this.#forgiven--;
        return;
      case 'busy':
        this.#servedMillis = now;
        this.#reject(id, verdict.code, 'the server is busy; send it again');
        return;
      case 'late':
        this.#reject(id, verdict.code);
        return;
      case 'unknown_job':
      case 'bad_nonce':
        this.#reject(id, CODE[verdict.kind]);
        return;
    }
  }

  /**
   * Whether excess submits are the miner's fault. They are not while the server is still looking for its share work, or
   * while the block target is easier than its share work would be, or where the port has fixed it, as long as its shares are
   * accepted.
   */
  #isOwnExcess(jobs: Jobs, now: number): boolean {
    const isServed = this.pending > 0 || !this.#desk.ready || now - this.#servedMillis < GOOD_FAITH_MILLIS;
    return !isServed || (jobs.isPaced && this.service.fixedWork === undefined);
  }

  accepted(share: PendingShare, work: bigint, blockId: Bytes | null): void {
    this.pending--;
    this.#tally.accept(work);
    this.#host.accepted(share.id, work, blockId);
    this.#host.works();
    if (this.#tally.accepted === 1) this.keep();
    const now = this.#desk.now();
    this.#servedMillis = now;
    this.#jobs?.accepted(work, now);
    this.retarget(now);
  }

  refused(share: PendingShare, code: RefusalCode, again: boolean, message?: string): void {
    this.pending--;
    if (again) {
      this.#jobs?.log.unjudge(share.terms, share.template.serial, share.nonce);
      this.#servedMillis = this.#desk.now();
    }
    this.#reject(share.id, code, message);
  }

  spend(terms: Terms): boolean {
    if (terms.isSpent) return false;
    terms.isSpent = true;
    if (this.#tally.accepted > 0) this.#host.note(() => spentEntry(terms.owner ?? this.#login.owner, terms));
    return true;
  }

  renew(): void {
    this.#jobs?.offer(false);
  }

  memberOf({ owner }: Terms): Member {
    return owner === null ? (this.member as Member) : this.#login.memberOf(owner);
  }

  get members(): readonly Member[] {
    return this.#login.members;
  }

  get payout(): Bytes {
    return this.#login.payout;
  }

  bodyOf(terms: Terms): Body {
    return (this.#jobs as Jobs).bodyOf(terms);
  }

  defect(error: unknown): void {
    this.#host.defect(error);
  }

  // --- jobs -------------------------------------------------------------------------------------------------------------

  get isCurrent(): boolean {
    return this.#jobs?.isCurrent ?? true;
  }

  offer(clean: boolean): void {
    this.#jobs?.offer(clean);
  }

  retarget(now: number): void {
    if (!this.#isDraining) this.#jobs?.retarget(now);
  }

  /** Once a minute or so: forgets what concerns only dead jobs. */
  forget(oldestSerial: number): void {
    this.#jobs?.forget(oldestSerial);
  }

  // --- other requests -----------------------------------------------------------------------------------------------------

  stats(id: AnswerId, tell: (stats: WorkerStats) => void): void {
    const jobs = this.#miningJobs(id);
    if (jobs === null) return;
    // Nothing waits for this answer, so a slow database delays no submit.
    if (this.service.pool === null) tell(this.#stats(jobs, null));
    else this.#host.balance((balance) => tell(this.#stats(jobs, balance)));
  }

  #stats(jobs: Jobs, balance: Balance | null): WorkerStats {
    return {
      ...this.#tally.state(),
      hashRate: BigInt(Math.round(jobs.hashRate)),
      shareWork: jobs.shareWork,
      pool: balance === null ? null : { pendingAtoms: balance.pending, paidAtoms: balance.paid },
    };
  }

  /** From now on receipts are sent to this connection, where the service gives any (S33). */
  receipts(id: AnswerId): void {
    if (this.#miningJobs(id) === null) return;
    const offer = this.service.receipts ?? null;
    if (offer !== null) this.#host.wantsReceipts();
    this.#host.receipts(id, offer);
  }

  ping(id: AnswerId, value: bigint): void {
    if (this.#admit(id)) this.#host.pong(id, value);
  }

  /** For requests that only a miner may send: null when it was refused. */
  #miningJobs(id: AnswerId): Jobs | null {
    if (!this.#admit(id)) return null;
    const isConnected = this.#login.state === 'connected';
    if (this.#jobs === null) this.refuse(id, isConnected ? CODE.not_subscribed : CODE.not_authorized);
    return this.#jobs;
  }

  // --- refusals and faults --------------------------------------------------------------------------------------------------

  /** Refuses a request other than a submit. */
  refuse(id: AnswerId, code: RefusalCode, message?: string): void {
    this.#host.refuse(id, errorReply(code, message));
    this.#scoreFor(code);
  }

  #reject(id: AnswerId, code: RefusalCode, message?: string, scored = true): void {
    this.#tally.reject(code);
    this.#host.rejected(id, errorReply(code, message));
    if (this.member !== null) this.#host.refusedShare(code);
    if (scored) this.#scoreFor(code);
  }

  #scoreFor(code: RefusalCode): void {
    const fault = FAULTS[code];
    // Pipelined requests, sent before an earlier one was deferred.
    if (fault === undefined || (fault === 'unauthorized' && this.#login.wasPutOff)) return;
    this.fault(fault);
  }

  /** Refuses a login that can be read: a typing error is the miner's, but nothing to be banned for. */
  decline(id: AnswerId, code: RefusalCode, message: string): void {
    this.#host.refuse(id, errorReply(code, message));
  }

  fault(fault: Fault): void {
    if (this.#host.isExempt) return;
    const { limits } = this.#desk;
    const isOver = this.#conduct.fault(fault, limits, this.#desk.now());
    if (!this.isMining) this.#host.faultOfAddress(fault);
    if (isOver) this.ban(limits.bans.banMillis);
  }

  #admit(id: AnswerId): boolean {
    const now = this.#desk.now();
    this.lastActiveMillis = now;
    const isAdmitted = this.#takeRequest(now);
    if (!isAdmitted) this.#host.refuse(id, errorReply(CODE.too_many_requests, TOO_MANY_REQUESTS));
    return isAdmitted;
  }

  #takeRequest(now: number): boolean {
    const isTaken = this.#conduct.takeRequest(this.#desk.limits, now);
    if (!isTaken) this.fault('excess');
    return isTaken;
  }

  // --- the end ----------------------------------------------------------------------------------------------------------

  drain(waitMillis: number): void {
    if (this.#isDraining) return;
    this.#isDraining = this.isMining;
    this.#host.reconnect({ host: '', port: 0, waitMillis });
  }

  ban(retryAfterMillis: number): void {
    if (this.#isBanned) return;
    this.#isBanned = true;
    this.#host.refuse(null, bannedReply(retryAfterMillis));
    this.#host.end('banned');
  }

  began(terms: Terms, jobId: number): void {
    if (this.#tally.accepted > 0) this.#host.note(() => runEntry(this.#login.owner, terms, jobId));
  }

  /** For a restart: notes what would be resumed then. One without an accepted share is not worth a place on the disk. */
  keep(): void {
    if (this.#tally.accepted === 0) return;
    this.#host.note(() => {
      const record = this.record(false);
      return record === null ? null : sessionEntry(record, this.#desk.now());
    });
  }

  /** What a later connection gets back; null when there is nothing worth keeping. `withSeen`: with the nonces that were judged. */
  record(withSeen = true): SessionRecord | null {
    const login = this.#login;
    const { score, bannedUntilMillis } = this.#conduct;
    if (this.#jobs === null) return login.record === null ? null : { ...login.record, score, bannedUntilMillis };
    // Each resume adds a body: one that reconnects again and again must not become larger and larger.
    this.#jobs.forget(this.#desk.shelf.oldest);
    const { account, worker } = login.member as Member;
    return {
      id: login.id,
      bootId: this.#desk.bootId,
      service: this.service.name,
      owner: login.owner,
      prefix: login.prefix,
      tag: login.tag,
      account,
      worker,
      vardiff: this.#jobs.vardiff,
      ...this.#tally.state(),
      score,
      bannedUntilMillis,
      jobs: this.#jobs.state(withSeen),
    };
  }
}
