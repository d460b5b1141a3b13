/**
 * A session as a state machine (docs/protocol/stratum.md, S50 to S56): connected, subscribed, authorized (its ownership is
 * being put on record), mining, draining. Requests and verdicts come in as calls, everything goes out through the voice
 * and the desk; time, names and randomness come from the desk. So a recorded session replays byte for byte, and no test
 * of it needs a socket.
 */
import { formatAddress } from '../protocol/address.ts';
import { type Bytes, equalBytes } from '../protocol/bytes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { answerTo, bannedReply, errorReply, type RefusalCode, stratumError } from '../protocol/stratum/errors.ts';
import type { Authorize, RejectReason, Subscribe } from '../protocol/stratum/messages.ts';
import { parsePassword, parseUsername, type Wishes } from '../protocol/stratum/username.ts';
import { addPoints, FAULT_POINTS, type Fault } from './ban-score.ts';
import { Bodies, type Body, type BodyOwner } from './bodies.ts';
import type { Balance, Member, SessionRecord } from './hub.ts';
import { JobLog, jobIdOf, MAX_REVISION, serialOf, type Terms } from './job-book.ts';
import type { ServedTemplate } from './served-template.ts';
import { type StratumService, tagOf } from './service.ts';
import type { ConnectionNumbers, PendingShare, SessionDesk } from './session-desk.ts';
import { type Bucket, fullBucket, take } from './token-bucket.ts';
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
const FIRST_BODY: Pick<SessionRecord, 'generation' | 'spare'> = { generation: 0, spare: null };

/** What every call of `mining.stats` and every resumed session goes on counting. */
const NO_REJECTS: Readonly<Record<string, number>> = {};

export class Session implements BodyOwner {
  readonly service: StratumService;
  readonly #desk: SessionDesk;
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
  #lastJobId = -1;
  #resumed = false;
  /** The request that `busy` is about. */
  #open: AnswerId = null;
  #requests: Bucket | null = null;
  #submits: Bucket | null = null;
  #points = 0;
  #pointsAt = 0;
  #accepted = 0;
  #stale = 0;
  #rejected: Record<string, number> | null = null;
  work = 0n;
  /** Submits that are being verified. */
  pending = 0;
  lastActiveMillis: number;

  constructor(service: StratumService, desk: SessionDesk, voice: Voice) {
    this.service = service;
    this.#desk = desk;
    this.voice = voice;
    this.lastActiveMillis = desk.now();
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
      this.refuse(id, 31);
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
    const numbers = this.#desk.newNumbers();
    // From another instance, or from before a restart: its jobs are not known here, and neither is what was judged on them. A
    // name of our own keeps the headers apart, whoever else may come with the same record; all that is no job goes on.
    const isOurs = equalBytes(record.bootId, this.#desk.bootId);
    this.id = record.id;
    this.#take({ ...numbers, prefix: record.prefix, ...(isOurs ? { owner: record.owner } : {}) });
    this.tag = record.tag;
    this.#log = isOurs ? JobLog.restore(record.log) : null;
    this.#vardiff = record.vardiff;
    this.#accepted = record.accepted;
    this.#stale = record.stale;
    this.#rejected = { ...record.rejected };
    this.work = record.work;
    this.#lastJobId = isOurs ? record.lastJobId : -1;
    this.#resumed = isOurs && record.account !== null;
    if (record.account !== null) this.#become(record.account, record.worker, isOurs ? record : FIRST_BODY);
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
      this.refuse(id, 31);
      return;
    }
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

  /** The ownership is on record: from now on the connection may mine. */
  owned(): void {
    this.busy = false;
    if (this.state !== 'authorized') return;
    const { limits } = this.#desk;
    this.#vardiff ??= newVardiff(limits.vardiff, this.#desk.now(), this.#wishes?.minWork ?? limits.vardiff.startWork);
    this.#log ??= new JobLog();
    this.state = 'mining';
    this.#desk.joined(this);
    this.#authorized(this.#open);
    this.offer(!this.#resumed);
  }

  /** The ownership could not be put on record: nothing the miner did. */
  notOwned(): void {
    this.busy = false;
    if (this.state !== 'authorized') return;
    this.state = 'subscribed';
    this.member = null;
    this.refuse(this.#open, 20);
  }

  submit(id: AnswerId, jobId: number, nonce: Bytes): void {
    const desk = this.#desk;
    const now = desk.now();
    this.lastActiveMillis = now;
    if (this.state === 'connected') {
      this.#reject(id, 25);
      return;
    }
    if (!this.isMining) {
      this.#reject(id, 24);
      return;
    }
    const { limits } = desk;
    const bucket = take(this.#submits ?? fullBucket(limits.submits, now), limits.submits, now);
    if (bucket === undefined) {
      // A newcomer far faster than the first share work floods at first through no fault of its own.
      if (this.#vardiff?.phase === 'settled' || this.#wishes?.fixedWork != null) this.fault('excess');
      this.#reject(id, 27, 'more submits than one connection may send');
      return;
    }
    this.#submits = bucket;
    const log = this.#log as JobLog;
    const terms = log.termsOf(jobId);
    if (terms === undefined || jobId > this.#lastJobId) {
      this.#reject(id, 21);
      return;
    }
    const found = desk.shelf.find(serialOf(jobId), desk.headHeight, now);
    if (found.state === 'unknown' || this.#draw % found.template.draws !== found.template.draw) {
      this.#reject(id, 21);
      return;
    }
    if (nonce[6] !== this.#prefix >> 8 || nonce[7] !== (this.#prefix & 0xff)) {
      this.#reject(id, 26);
      return;
    }
    const refusal = found.state === 'expired' ? 21 : desk.ready ? null : 31;
    if (refusal !== null && this.#bodies?.isSpent(terms.generation) !== false) {
      this.#reject(id, refusal);
      return;
    }
    if (!log.judge(jobId, nonce)) {
      this.#reject(id, 22, undefined, !this.#resumed);
      return;
    }
    if (!desk.admits(refusal !== null)) {
      log.unjudge(jobId, nonce);
      this.#reject(id, refusal ?? 27, refusal === null ? 'the server is busy; send it again' : undefined);
      return;
    }
    this.pending++;
    desk.check({
      session: this,
      id,
      jobId,
      nonce,
      template: found.template,
      terms,
      refusal,
      atMillis: Math.floor(now),
    });
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
    this.busy = true;
    this.#desk.balance(this, id);
  }

  balanced(id: AnswerId, balance: Balance | null): void {
    this.busy = false;
    this.#tellStats(id, balance);
  }

  ping(id: AnswerId, value: bigint): void {
    if (!this.#admit(id)) return;
    this.voice.pong(id, value);
  }

  /** What could not be read, or must not be said. */
  refuse(id: AnswerId, code: RefusalCode, message?: string): void {
    this.voice.refuse(id, errorReply(code, message));
    const fault = FAULTS[code];
    if (fault !== undefined) this.fault(fault);
  }

  // --- verdicts -------------------------------------------------------------------------------------------------------

  accepted(share: PendingShare, work: bigint, blockId: Bytes | null): void {
    this.pending--;
    this.#accepted++;
    this.work += work;
    this.voice.accepted(share.id, work, blockId);
    const { limits } = this.#desk;
    const now = this.#desk.now();
    this.#vardiff = onShare(this.#vardiff as Vardiff, work, now, limits.vardiff);
    this.retarget(now);
  }

  /** `again`: nothing was judged, so the miner may send the nonce once more. */
  refused(share: PendingShare, code: RefusalCode, again: boolean, message?: string): void {
    this.pending--;
    if (again) this.#log?.unjudge(share.jobId, share.nonce);
    this.#reject(share.id, code, message);
  }

  /** Whether a hit on these terms can be a block; asked once per hit, because a body is good for one block. */
  spend(terms: Terms): boolean {
    const bodies = this.#bodies as Bodies;
    if (bodies.isSpent(terms.generation)) return false;
    bodies.spend(this, terms.generation);
    return true;
  }

  /** After a block: a job on a fresh body at once (S53). */
  renew(): void {
    if (this.#bodies?.isOver === true) this.voice.end('every body of this connection had its block');
    else if (this.isMining) this.offer(false);
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
    return template === undefined || (this.#lastJobId >= 0 && serialOf(this.#lastJobId) >= template.serial);
  }

  /** Sends a job on the newest template, and before the first one a large miner's spare (S57). */
  offer(clean: boolean): void {
    const template = this.#desk.newest(this.#draw);
    if (template === undefined) return;
    const bodies = this.#bodies as Bodies;
    const isFirst = this.#lastJobId < 0 || serialOf(this.#lastJobId) !== template.serial;
    const spare = isFirst && this.#isLarge(template) ? bodies.keepSpare(this) : null;
    if (spare !== null) this.#send(template, spare, clean);
    this.#send(template, bodies.current, clean && spare === null);
  }

  /** On a template that was sent before, under the next revision of its id. */
  #send(template: ServedTemplate, { generation, extranonce, rewardRoot }: Body, clean: boolean): void {
    const first = jobIdOf(template.serial, 0);
    const jobId = this.#lastJobId < first ? first : this.#lastJobId + 1;
    if (jobId - first > MAX_REVISION) return;
    const { shareWork, payout } = this;
    (this.#log as JobLog).send(jobId, generation, shareWork);
    this.#lastJobId = jobId;
    const shareTarget = template.termsFor(shareWork).target;
    this.voice.job(template, { jobId, rewardRoot, shareTarget, payout, extranonce, clean });
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

  bodyOf(generation: number): Body {
    return (this.#bodies as Bodies).find(this, generation);
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
    this.#log?.forget(oldestSerial);
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
    const score = addPoints({ points: this.#points, atMillis: this.#pointsAt }, FAULT_POINTS[fault], now, bans);
    this.#points = score.points;
    this.#pointsAt = score.atMillis;
    if (score.points >= bans.limit) this.ban(bans.banMillis);
  }

  /** What a later connection gets back; null when there is nothing worth keeping. */
  record(): SessionRecord | null {
    if (this.#owner === null || this.member === null || this.#log === null) return null;
    return {
      id: this.id,
      bootId: this.#desk.bootId,
      service: this.service.name,
      owner: this.#owner,
      prefix: this.#prefix,
      tag: this.tag,
      generation: this.#bodies?.current.generation ?? 0,
      spare: this.#bodies?.spare?.generation ?? null,
      account: this.member.account,
      worker: this.member.worker,
      vardiff: this.#vardiff,
      log: this.#log.state(),
      accepted: this.#accepted,
      stale: this.#stale,
      rejected: this.#rejected ?? NO_REJECTS,
      work: this.work,
      lastJobId: this.#lastJobId,
    };
  }

  // --- inside ---------------------------------------------------------------------------------------------------------

  #begin(id: AnswerId): void {
    this.id = this.#desk.newSessionId();
    this.#take(this.#desk.newNumbers());
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
    const { pool } = this.service;
    this.voice.subscribed(id, {
      session: this.id,
      noncePrefix: Uint8Array.of(this.#prefix >> 8, this.#prefix & 0xff),
      network: this.#desk.network.id,
      server: this.#desk.server,
      pool: pool === null ? null : { address: pool.address, name: pool.name },
    });
  }

  #become(account: Bytes, worker: string, { generation, spare } = FIRST_BODY): void {
    this.member = {
      handle: this.#handle,
      owner: this.owner,
      service: this.service.name,
      account,
      worker,
      tag: this.tag,
      agent: this.#agent,
    };
    this.#bodies = new Bodies(this, generation, spare);
  }

  #authorized(id: AnswerId): void {
    const { account, worker } = this.member as Member;
    this.voice.authorized(id, { address: formatAddress(account, this.#desk.network.name), worker });
  }

  /** Requests other than submits are cheap but not free: each connection has a bucket of them. */
  #admit(id: AnswerId): boolean {
    const now = this.#desk.now();
    this.lastActiveMillis = now;
    const { requests } = this.#desk.limits;
    const bucket = take(this.#requests ?? fullBucket(requests, now), requests, now);
    if (bucket === undefined) {
      this.voice.refuse(id, errorReply(27, 'more requests than one connection may send'));
      this.fault('excess');
      return false;
    }
    this.#requests = bucket;
    return true;
  }

  #reject(id: AnswerId, code: RefusalCode, message?: string, scored = true): void {
    if (code === 21) this.#stale++;
    else {
      const reason = stratumError(code).name as RejectReason;
      this.#rejected ??= {};
      this.#rejected[reason] = (this.#rejected[reason] ?? 0) + 1;
    }
    this.voice.rejected(id, errorReply(code, message));
    if (this.member !== null) this.#desk.refusedShare(this, code);
    const fault = scored ? FAULTS[code] : undefined;
    if (fault !== undefined) this.fault(fault);
  }

  #tellStats(id: AnswerId, balance: Balance | null): void {
    this.voice.stats(id, {
      accepted: this.#accepted,
      rejected: this.#rejected ?? {},
      stale: this.#stale,
      work: this.work,
      hashRate: BigInt(Math.round(this.#vardiff === null ? 0 : hashRate(this.#vardiff))),
      shareWork: this.shareWork,
      pool: balance === null ? null : { pendingAtoms: balance.pending, paidAtoms: balance.paid },
    });
  }
}
