/**
 * A session as a state machine (docs/protocol/stratum.md, S50 to S59): connected, subscribed, authorized (the sink is
 * being asked), mining, draining. Requests and verdicts come in as calls, everything goes out through the voice
 * and the desk; time, names and randomness come from the desk. So a recorded session replays byte for byte, and no test
 * of it needs a socket.
 */
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { answerTo, bannedReply, errorReply, type RefusalCode } from '../../protocol/stratum/errors.ts';
import type { Authorize, Subscribe } from '../../protocol/stratum/messages.ts';
import { parsePassword, parseUsername, type Wishes } from '../../protocol/stratum/username.ts';
import { type Bucket, fullBucket, take } from '../../runtime/token-bucket.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import { judgedLimit } from '../options.ts';
import { type StratumService, tagOf } from '../service.ts';
import type { Balance, Member } from '../threads/hub.ts';
import { addPoints, FAULT_POINTS, type Fault, NO_POINTS, type Score } from './ban-score.ts';
import { Bodies, type Body, type BodyOwner } from './bodies.ts';
import { serialOf } from './job-book.ts';
import { JobLog, type Terms } from './job-log.ts';
import type { ConnectionNumbers, PendingShare, SessionDesk } from './session-desk.ts';
import type { SessionRecord } from './session-record.ts';
import { Tally } from './tally.ts';
import { hashRate, newVardiff, onShare, retarget, type Vardiff } from './vardiff.ts';
import type { AnswerId, Voice } from './voice.ts';

export type SessionState = 'connected' | 'subscribed' | 'authorized' | 'mining' | 'draining';

const FAULTS: Partial<Record<RefusalCode, Fault>> = {
  [-32700]: 'malformed',
  [-32600]: 'malformed',
  [-32601]: 'malformed',
  [-32602]: 'malformed',
  22: 'duplicate',
  23: 'above_target',
  24: 'unauthorized',
  25: 'unauthorized',
  26: 'bad_nonce',
};

/** A miner that finds a block this often, or oftener, is a large one. */
const LARGE_SECONDS = 60;
/** A miner whose last share was taken, or not taken through a fault of ours, no longer ago than this means no harm. */
const GOOD_FAITH_MILLIS = 10_000;
const TOO_MANY_REQUESTS = 'more requests than one connection may send';

export class Session implements BodyOwner {
  readonly service: StratumService;
  readonly #desk: SessionDesk<Session>;
  readonly voice: Voice;
  state: SessionState = 'connected';
  id = '';
  /** A request waits for the main thread: those after it must wait too, or answers would overtake each other. */
  busy = false;
  member: Member | null = null;
  /** What a job of this connection differs by. */
  #bodies: Bodies | null = null;
  #prefix = 0;
  #draw = 0;
  #handle = 0;
  #owner: Bytes | null = null;
  #agent = '';
  tag = '';
  #log: JobLog | null = null;
  #vardiff: Vardiff | null = null;
  #wishes: Wishes | null = null;
  /** The newest template that a job of this connection was on. */
  #serial = -1;
  #resumed = false;
  /** Submits of before the resume that may come again, because their answers were lost. */
  #forgiven = 0;
  /** The last login request was put off by us: nothing that follows from it is the miner's fault. */
  #isPutOff = false;
  /** The request that `busy` is about. */
  #open: AnswerId = null;
  #requests: Bucket | null = null;
  #submits: Bucket | null = null;
  #late: Bucket | null = null;
  #owed: Bucket | null = null;
  #score: Score = NO_POINTS;
  #bannedUntil = 0;
  /** When a share was last accepted, or refused for a reason of ours. */
  #servedMillis: number;
  readonly #tally = new Tally();
  /** Submits that are being verified. */
  pending = 0;
  lastActiveMillis: number;

  constructor(service: StratumService, desk: SessionDesk<Session>, voice: Voice) {
    this.service = service;
    this.#desk = desk;
    this.voice = voice;
    this.lastActiveMillis = desk.now();
    this.#servedMillis = this.lastActiveMillis;
  }

  get work(): bigint {
    return this.#tally.work;
  }

  get isResumed(): boolean {
    return this.#resumed;
  }

  get isMining(): boolean {
    return this.state === 'mining' || this.state === 'draining';
  }

  // --- requests -------------------------------------------------------------------------------------------------------

  subscribe(id: AnswerId, asked: Subscribe): void {
    if (!this.#admit(id)) return;
    if (this.state !== 'connected') {
      this.refuse(id, -32600, 'subscribed already');
      return;
    }
    if (!this.#desk.ready) {
      this.#putOff(id, 31);
      return;
    }
    this.#agent = asked.agent;
    this.tag = tagOf(this.service, asked.tag);
    if (asked.session === null) {
      this.#begin(id);
      return;
    }
    this.busy = true;
    this.#open = id;
    this.#desk.resume(this, asked.session);
  }

  /** The session asked for, or null when it is unknown or too old. */
  resumed(record: SessionRecord | null): void {
    const id = this.#open;
    this.busy = false;
    if (record === null || record.service !== this.service.name) {
      this.#begin(id);
      return;
    }
    const banLeft = record.bannedUntilMillis - this.#desk.now();
    if (banLeft > 0) {
      this.ban(Math.ceil(banLeft));
      return;
    }
    const numbers = this.#desk.newNumbers(this.service.mark);
    // From another instance, or from before a restart: its jobs are not known here, and neither is what was judged on them. A
    // name of our own keeps the headers apart, whoever else may come with the same record; all that is no job goes on.
    const jobs = equalBytes(record.bootId, this.#desk.bootId) ? record.jobs : null;
    this.id = record.id;
    this.#take({ ...numbers, prefix: record.prefix, ...(jobs === null ? {} : { owner: record.owner }) });
    this.tag = record.tag;
    this.#vardiff = record.vardiff;
    this.#tally.restore(record);
    this.#score = record.score;
    this.#become(record.account, record.worker);
    this.#resumed = jobs !== null;
    if (jobs !== null) {
      const log = JobLog.restore(jobs.log, judgedLimit(this.#desk.limits));
      const spare = jobs.spare === null ? null : (log.termsOf(jobs.spare) as Terms);
      this.#log = log;
      this.#bodies = new Bodies(this, log, log.termsOf(jobs.current) as Terms, spare);
      this.#forgiven = log.judged;
    }
    this.#subscribed(id);
  }

  authorize(id: AnswerId, asked: Authorize): void {
    if (!this.#admit(id)) return;
    if (this.state === 'connected') {
      this.refuse(id, 25);
      return;
    }
    let account: Bytes;
    let worker: string;
    let wishes: Wishes;
    try {
      const username = parseUsername(asked.username, this.#desk.network.name);
      account = username.address.payload;
      worker = username.worker;
      wishes = parsePassword(asked.password);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.refuse(id, answerTo(error), error.message);
      return;
    }
    if (this.member !== null && (!equalBytes(this.member.account, account) || this.member.worker !== worker)) {
      this.refuse(id, -32600, 'another username was authorized already');
      return;
    }
    if (this.state !== 'subscribed') {
      this.#authorized(id);
      return;
    }
    if (!this.#desk.ready) {
      this.#putOff(id, 31);
      return;
    }
    this.#isPutOff = false;
    this.#wishes = wishes.fixedWork === null && wishes.minWork === null ? null : wishes;
    this.state = 'authorized';
    this.#open = id;
    if (this.#resumed) {
      this.owned();
      return;
    }
    this.#become(account, worker);
    this.busy = true;
    this.#desk.own(this, this.member as unknown as Member);
  }

  /** The sink will keep what it finds: from now on the connection may mine. */
  owned(): void {
    this.busy = false;
    if (this.state !== 'authorized') return;
    const { limits } = this.#desk;
    this.#vardiff ??= newVardiff(limits.vardiff, this.#desk.now(), this.#wishes?.minWork ?? limits.vardiff.startWork);
    this.#log ??= new JobLog(judgedLimit(limits));
    this.#bodies ??= new Bodies(this, this.#log, this.#log.begin(0, this.shareWork), null);
    this.state = 'mining';
    this.#desk.joined(this);
    this.#authorized(this.#open);
    this.offer(!this.#resumed);
  }

  /** What it finds could not be kept now: nothing the miner did. */
  notOwned(): void {
    this.busy = false;
    if (this.state !== 'authorized') return;
    this.state = 'subscribed';
    this.member = null;
    this.#putOff(this.#open, 20);
  }

  submit(id: AnswerId, jobId: number, nonce: Bytes): void {
    const desk = this.#desk;
    const now = desk.now();
    this.lastActiveMillis = now;
    if (!this.isMining) {
      if (this.#takeRequest(now)) this.#reject(id, this.state === 'connected' ? 25 : 24);
      else this.#reject(id, 27, TOO_MANY_REQUESTS);
      return;
    }
    const { limits } = desk;
    const bucket = take(this.#submits ?? fullBucket(limits.submits, now), limits.submits, now);
    if (bucket === undefined) {
      if (this.#isOwnExcess(now)) this.fault('excess');
      this.#reject(id, 27, 'more submits than one connection may send');
      return;
    }
    this.#submits = bucket;
    const log = this.#log as JobLog;
    const serial = serialOf(jobId);
    const terms = log.find(jobId);
    const found = desk.shelf.find(serial, desk.headHeight, now);
    if (terms === undefined || found.state === 'unknown' || this.#draw % found.template.draws !== found.template.draw) {
      this.#reject(id, 21);
      return;
    }
    if (nonce[6] !== this.#prefix >> 8 || nonce[7] !== (this.#prefix & 0xff)) {
      this.#reject(id, 26);
      return;
    }
    const refusal = found.state === 'expired' ? 21 : desk.ready ? null : 31;
    if (refusal !== null && terms.isSpent) {
      this.#reject(id, refusal);
      return;
    }
    const judged = log.judge(terms, serial, nonce);
    if (judged === 'again') {
      this.#reject(id, 22, undefined, this.#forgiven <= 0);
      this.#forgiven--;
      return;
    }
    if (judged === 'full') {
      this.#reject(id, 27, 'more shares on live jobs than one session may have');
      return;
    }
    const isOwed = this.#takeOwed(now);
    const isLate = refusal !== null;
    if (isLate && !this.#takeLate(now)) {
      log.unjudge(terms, serial, nonce);
      this.#reject(id, refusal);
      return;
    }
    if (!isOwed && !desk.admits()) {
      log.unjudge(terms, serial, nonce);
      this.#servedMillis = now;
      this.#reject(id, refusal === 31 ? 31 : 27, 'the server is busy; send it again');
      return;
    }
    this.pending++;
    const atMillis = Math.floor(now);
    desk.check({ session: this, id, nonce, template: found.template, terms, refusal, isOwed, atMillis });
  }

  /**
   * A flood is the miner's fault where it can help it. It cannot while the server is still finding its share work, or while
   * the block target is easier than the work it would have; but its shares must be good ones.
   */
  #isOwnExcess(now: number): boolean {
    const isServed = this.pending > 0 || !this.#desk.ready || now - this.#servedMillis < GOOD_FAITH_MILLIS;
    const isEased = this.shareWork >= (this.#desk.newest(this.#draw)?.blockWork ?? 0n);
    const isPaced = this.#vardiff?.phase === 'settled' || this.#wishes?.fixedWork != null;
    return !isServed || (isPaced && !isEased);
  }

  /** Late shares are hashed only because one may be a block; each connection has a budget of its own for them. */
  #takeLate(now: number): boolean {
    const { lateSubmits } = this.#desk.limits;
    const bucket = take(this.#late ?? fullBucket(lateSubmits, now), lateSubmits, now);
    if (bucket !== undefined) this.#late = bucket;
    return bucket !== undefined;
  }

  /** The few submits of a connection that are hashed whatever others send: one of them may be a block. */
  #takeOwed(now: number): boolean {
    const { owedSubmits } = this.#desk.limits;
    const bucket = take(this.#owed ?? fullBucket(owedSubmits, now), owedSubmits, now);
    if (bucket !== undefined) this.#owed = bucket;
    return bucket !== undefined;
  }

  stats(id: AnswerId): void {
    if (!this.#admit(id)) return;
    if (!this.isMining) {
      this.refuse(id, this.state === 'connected' ? 25 : 24);
      return;
    }
    if (this.service.pool === null) {
      this.#tellStats(id, null);
      return;
    }
    // Nothing waits for this answer: a database that is slow holds up no submit.
    this.#desk.balance(this, id);
  }

  balanced(id: AnswerId, balance: Balance | null): void {
    this.#tellStats(id, balance);
  }

  /** From now on receipts are sent to this connection, where the service gives any (S33). */
  receipts(id: AnswerId): void {
    if (!this.#admit(id)) return;
    if (!this.isMining) {
      this.refuse(id, this.state === 'connected' ? 25 : 24);
      return;
    }
    const offer = this.service.receipts ?? null;
    if (offer !== null) this.#desk.wantsReceipts(this);
    this.voice.receipts(id, offer);
  }

  ping(id: AnswerId, value: bigint): void {
    if (!this.#admit(id)) return;
    this.voice.pong(id, value);
  }

  /** What could not be read, or must not be said. */
  refuse(id: AnswerId, code: RefusalCode, message?: string): void {
    this.voice.refuse(id, errorReply(code, message));
    this.#scoreFor(code);
  }

  /** We are not ready, or could not keep what it finds. */
  #putOff(id: AnswerId, code: 20 | 31): void {
    this.#isPutOff = true;
    this.refuse(id, code);
  }

  /** Whether the miner waits for us, or was told to ask again: then it is not at fault for not having logged in. */
  get isPutOff(): boolean {
    return this.busy || this.#isPutOff;
  }

  #scoreFor(code: RefusalCode): void {
    const fault = FAULTS[code];
    // Requests that were sent ahead, before the one in front of them was put off.
    if (fault === undefined || (fault === 'unauthorized' && this.#isPutOff)) return;
    this.fault(fault);
  }

  // --- verdicts -------------------------------------------------------------------------------------------------------

  accepted(share: PendingShare<Session>, work: bigint, blockId: Bytes | null): void {
    this.pending--;
    this.#tally.accept(work);
    this.voice.accepted(share.id, work, blockId);
    const { limits } = this.#desk;
    const now = this.#desk.now();
    this.#servedMillis = now;
    this.#vardiff = onShare(this.#vardiff as Vardiff, work, now, limits.vardiff);
    this.retarget(now);
  }

  /** `again`: nothing was judged, so the miner may send the nonce once more. */
  refused(share: PendingShare<Session>, code: RefusalCode, again: boolean, message?: string): void {
    this.pending--;
    if (again) {
      this.#log?.unjudge(share.terms, share.template.serial, share.nonce);
      this.#servedMillis = this.#desk.now();
    }
    this.#reject(share.id, code, message);
  }

  /** Whether a hit on these terms can be a block; asked once per hit, because a body is good for one block. */
  spend(terms: Terms): boolean {
    if (terms.isSpent) return false;
    terms.isSpent = true;
    return true;
  }

  /** After a block: a job on a fresh body at once (S53). */
  renew(): void {
    if (this.isMining) this.offer(false);
  }

  // --- jobs -----------------------------------------------------------------------------------------------------------

  get shareWork(): bigint {
    const work = this.#vardiff?.work ?? 0n;
    const floor = this.#desk.limits.vardiff.minWork;
    const { fixedWork, minWork } = this.#wishes ?? { fixedWork: null, minWork: null };
    if (fixedWork !== null) return fixedWork > floor ? fixedWork : floor;
    return minWork !== null && minWork > work ? minWork : work;
  }

  /** Whether the newest template has gone out on this connection. */
  get isCurrent(): boolean {
    const template = this.#desk.newest(this.#draw);
    return template === undefined || this.#serial >= template.serial;
  }

  /** Sends a job on the newest template, and before the first one a large miner's spare (S57). */
  offer(clean: boolean): void {
    const template = this.#desk.newest(this.#draw);
    if (template === undefined) return;
    const bodies = this.#bodies as Bodies;
    const { shareWork } = this;
    const isFirst = this.#log?.hasJobOn(template.serial) === false;
    const spare = isFirst && this.#isLarge(template) ? bodies.keepSpare(this, shareWork, template) : null;
    const body = bodies.forJob(this, shareWork, template);
    if (bodies.isOver) {
      this.voice.end('every body of this connection was used');
      return;
    }
    if (spare !== null) this.#send(template, spare, clean);
    this.#send(template, body, clean && spare === null);
  }

  /** Under the next id of the template; without one left the miner goes on with what it has until the next template. */
  #send(template: ServedTemplate, { terms, extranonce, rewardRoot }: Body, clean: boolean): void {
    const before = this.#desk.before(this.#draw)?.serial;
    const jobId = (this.#log as JobLog).send(template.serial, before, terms);
    if (jobId === undefined) return;
    this.#serial = template.serial;
    const shareTarget = template.termsFor(terms.shareWork).target;
    this.voice.job(template, { jobId, rewardRoot, shareTarget, payout: this.payout, extranonce, clean });
  }

  /** Whether it finds blocks so often that the wait for a job after each would cost it work. */
  #isLarge({ blockWork }: ServedTemplate): boolean {
    const vardiff = this.#vardiff;
    return vardiff?.phase === 'settled' && hashRate(vardiff) * LARGE_SECONDS >= Number(blockWork);
  }

  get owner(): Bytes {
    return this.#owner as Bytes;
  }

  get payout(): Bytes {
    return this.service.pool?.payout ?? (this.member as Member).account;
  }

  bodyOf(terms: Terms): Body {
    return (this.#bodies as Bodies).find(this, terms);
  }

  /** Called after shares and about once a second: a changed share work goes out with a job of its own. */
  retarget(now: number): void {
    if (this.#vardiff === null || this.state !== 'mining') return;
    const before = this.shareWork;
    this.#vardiff = retarget(this.#vardiff, now, this.#desk.limits.vardiff);
    if (this.shareWork !== before) this.offer(false);
  }

  /** Once a minute or so: forgets what concerns only dead jobs. */
  forget(oldestSerial: number): void {
    this.#log?.forget(oldestSerial, [this.#bodies?.current.terms, this.#bodies?.spare?.terms]);
  }

  // --- the end --------------------------------------------------------------------------------------------------------

  drain(waitMillis: number): void {
    if (this.state === 'draining') return;
    this.state = this.state === 'mining' ? 'draining' : this.state;
    this.voice.reconnect({ host: '', port: 0, waitMillis });
  }

  ban(retryAfterMillis: number): void {
    this.voice.refuse(null, bannedReply(retryAfterMillis));
    this.voice.end('banned');
  }

  /** After authorization faults count against the session alone: many rigs share an address. */
  fault(fault: Fault): void {
    if (!this.isMining) {
      this.#desk.faultOfAddress(this, fault);
      return;
    }
    const { bans } = this.#desk.limits;
    const now = this.#desk.now();
    this.#score = addPoints(this.#score, FAULT_POINTS[fault], now, bans);
    if (this.#score.points < bans.limit) return;
    this.#bannedUntil = now + bans.banMillis;
    this.ban(bans.banMillis);
  }

  /** What a later connection gets back; null when there is nothing worth keeping. */
  record(): SessionRecord | null {
    if (this.#owner === null || this.member === null || this.#log === null || this.#bodies === null) return null;
    return {
      id: this.id,
      bootId: this.#desk.bootId,
      service: this.service.name,
      owner: this.#owner,
      prefix: this.#prefix,
      tag: this.tag,
      account: this.member.account,
      worker: this.member.worker,
      vardiff: this.#vardiff,
      ...this.#tally.state(),
      score: this.#score,
      bannedUntilMillis: this.#bannedUntil,
      jobs: {
        log: this.#log.state(),
        current: this.#bodies.current.terms.generation,
        spare: this.#bodies.spare?.terms.generation ?? null,
      },
    };
  }

  // --- inside ---------------------------------------------------------------------------------------------------------

  #begin(id: AnswerId): void {
    this.id = this.#desk.newSessionId();
    this.#take(this.#desk.newNumbers(this.service.mark));
    this.#subscribed(id);
  }

  #take({ owner, prefix, handle }: ConnectionNumbers): void {
    this.#owner = owner;
    this.#prefix = prefix;
    this.#handle = handle;
    this.#draw = (owner.at(-4) as number) | ((owner.at(-3) as number) << 8);
  }

  #subscribed(id: AnswerId): void {
    this.state = 'subscribed';
    this.#isPutOff = false;
    const { pool } = this.service;
    this.voice.subscribed(id, {
      session: this.id,
      noncePrefix: Uint8Array.of(this.#prefix >> 8, this.#prefix & 0xff),
      network: this.#desk.network.id,
      server: this.#desk.server,
      pool: pool === null ? null : { address: pool.address, name: pool.name },
    });
  }

  #become(account: Bytes, worker: string): void {
    this.member = {
      handle: this.#handle,
      owner: this.owner,
      service: this.service.name,
      account,
      worker,
      tag: this.tag,
      agent: this.#agent,
    };
  }

  #authorized(id: AnswerId): void {
    const { account, worker } = this.member as Member;
    this.voice.authorized(id, { address: formatAddress(account, this.#desk.network.name), worker });
  }

  #admit(id: AnswerId): boolean {
    const now = this.#desk.now();
    this.lastActiveMillis = now;
    const isAdmitted = this.#takeRequest(now);
    if (!isAdmitted) this.voice.refuse(id, errorReply(27, TOO_MANY_REQUESTS));
    return isAdmitted;
  }

  /** Requests are cheap but not free: each connection has a bucket of them; submits have their own once it mines. */
  #takeRequest(now: number): boolean {
    const { requests } = this.#desk.limits;
    const bucket = take(this.#requests ?? fullBucket(requests, now), requests, now);
    if (bucket === undefined) this.fault('excess');
    else this.#requests = bucket;
    return bucket !== undefined;
  }

  #reject(id: AnswerId, code: RefusalCode, message?: string, scored = true): void {
    this.#tally.reject(code);
    this.voice.rejected(id, errorReply(code, message));
    if (this.member !== null) this.#desk.refusedShare(this, code);
    if (scored) this.#scoreFor(code);
  }

  #tellStats(id: AnswerId, balance: Balance | null): void {
    this.voice.stats(id, {
      ...this.#tally.state(),
      hashRate: BigInt(Math.round(this.#vardiff === null ? 0 : hashRate(this.#vardiff))),
      shareWork: this.shareWork,
      pool: balance === null ? null : { pendingAtoms: balance.pending, paidAtoms: balance.paid },
    });
  }
}
