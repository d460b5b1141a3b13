/**
 * A session as a state machine (docs/protocol/stratum.md, S50 to S59): what each request may cost and how faults are
 * scored, here; the login in login.ts; jobs and shares in mining.ts, which is there once the login is over. Requests and
 * verdicts come in as calls, everything goes out through the host; time, names and randomness come from the desk. So a
 * recorded session can be replayed byte for byte, and tests need no socket.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { bannedReply, CODE, errorReply, type RefusalCode } from '../../protocol/stratum/errors.ts';
import type { FarmSubmit, Rig } from '../../protocol/stratum/farm.ts';
import type { Authorize, Subscribe, WorkerStats } from '../../protocol/stratum/messages.ts';
import { type Bucket, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import type { StratumLimits } from '../options.ts';
import type { StratumService } from '../service.ts';
import type { Member } from '../threads/hub.ts';
import { addPoints, FAULT_POINTS, type Fault, NO_POINTS, type Score } from './ban-score.ts';
import { Login, type Refuser } from './login.ts';
import { Mining, type MiningSession, type RefusedRig } from './mining.ts';
import { sessionEntry } from './session-entries.ts';
import type { SessionRecord } from './session-record.ts';
import type { SessionDesk, SessionHost } from './surroundings.ts';
import { Tally } from './tally.ts';
import type { AnswerId } from './voice.ts';

const TOO_MANY_REQUESTS = 'more requests than one connection may send';
const NOBODY: readonly Member[] = [];

/** The faults behind refusals. A refusal that is not here is not the miner's fault. */
const FAULTS: Partial<Record<RefusalCode, Fault>> = {
  [CODE.parse_error]: 'malformed',
  [CODE.invalid_request]: 'malformed',
  [CODE.unknown_method]: 'malformed',
  [CODE.invalid_params]: 'malformed',
  [CODE.duplicate]: 'duplicate',
  [CODE.above_target]: 'above_target',
  [CODE.not_authorized]: 'unauthorized',
  [CODE.not_subscribed]: 'unauthorized',
  [CODE.bad_nonce]: 'bad_nonce',
};

/** The requests that a session may send, and the score of its faults. Only the sender's own mistakes are faults: a login that can be read and is refused is none. */
class Conduct {
  score: Score = NO_POINTS;
  /** 0 when it is not banned. */
  bannedUntilMillis = 0;
  #requests: Bucket | null = null;

  /** Requests are cheap but not free: each connection has a bucket of them; submits have their own once it mines. */
  takeRequest({ requests }: StratumLimits, nowMillis: number): boolean {
    const bucket = take(this.#requests ?? fullBucket(requests, nowMillis), requests, nowMillis);
    if (bucket !== undefined) this.#requests = bucket;
    return bucket !== undefined;
  }

  /** Returns whether the session is banned for it. */
  fault(fault: Fault, { bans }: StratumLimits, nowMillis: number): boolean {
    this.score = addPoints(this.score, FAULT_POINTS[fault], nowMillis, bans);
    if (this.score.points < bans.limit) return false;
    this.bannedUntilMillis = nowMillis + bans.banMillis;
    return true;
  }
}

export class Session implements Refuser, MiningSession {
  readonly service: StratumService;
  readonly #desk: SessionDesk;
  readonly #host: SessionHost;
  readonly #login: Login;
  /** Null until the login is over. */
  mining: Mining | null = null;
  #isBanned = false;
  readonly #conduct = new Conduct();
  readonly tally = new Tally();
  lastActiveMillis: number;

  constructor(service: StratumService, desk: SessionDesk, host: SessionHost) {
    this.service = service;
    this.#desk = desk;
    this.#host = host;
    this.#login = new Login(service, desk, host, this);
    this.lastActiveMillis = desk.now();
  }

  get id(): string {
    return this.#login.id;
  }

  get member(): Member | null {
    return this.#login.member;
  }

  /** All that it was announced as. */
  get members(): readonly Member[] {
    return this.mining?.members ?? (this.member === null ? NOBODY : [this.member]);
  }

  get workers(): Iterable<string> {
    return this.mining?.workers ?? [];
  }

  get busy(): boolean {
    return this.#login.busy;
  }

  get isPutOff(): boolean {
    return this.#login.isPutOff;
  }

  /** Submits that are being verified. */
  get pending(): number {
    return this.mining?.pending ?? 0;
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
    this.tally.restore(kept);
    this.#conduct.score = kept.score;
  }

  #banLeft(record: SessionRecord): number {
    return Math.ceil(record.bannedUntilMillis - this.#desk.now());
  }

  authorize(id: AnswerId, asked: Authorize): void {
    if (this.#admit(id) && this.#login.authorize(id, asked) === 'complete') this.owned();
  }

  /** The sink has registered the miner: from now on the connection may mine. */
  owned(): void {
    const miner = this.#login.owned();
    if (miner === null) return;
    const banLeft = this.#host.banLeft(miner.member.account);
    if (banLeft > 0) {
      this.ban(banLeft);
      return;
    }
    const mining = new Mining(this, this.#desk, this.#host, miner);
    this.mining = mining;
    this.#host.joined(miner.member);
    this.#login.answer(miner);
    mining.offer(!miner.isResumed);
    this.keep();
  }

  /** The sink could not register the miner now, or has a reason not to. */
  notOwned(reason?: string): void {
    this.#login.notOwned(reason);
  }

  // --- other requests -----------------------------------------------------------------------------------------------------

  submit(id: AnswerId, jobId: number, nonce: Bytes): void {
    const now = this.#desk.now();
    this.lastActiveMillis = now;
    if (this.mining !== null) this.mining.submit(id, jobId, nonce, now);
    else this.#submitTooEarly(id, now);
  }

  #submitTooEarly(id: AnswerId, now: number): void {
    if (!this.#takeRequest(now)) this.reject(id, CODE.too_many_requests, TOO_MANY_REQUESTS);
    else this.reject(id, this.#login.missing);
  }

  stats(id: AnswerId, tell: (stats: WorkerStats) => void): void {
    const mining = this.#admitMining(id);
    if (mining === null) return;
    // Nothing waits for this answer, so a slow database delays no submit.
    if (this.service.pool === null) tell(mining.stats(null));
    else this.#host.balance(mining.member, (balance) => tell(mining.stats(balance)));
  }

  /** From now on receipts are sent to this connection, where the service gives any (S33). */
  receipts(id: AnswerId): void {
    if (this.#admitMining(id) === null) return;
    const offer = this.service.receipts ?? null;
    if (offer !== null) this.#host.wantsReceipts();
    this.#host.receipts(id, offer);
  }

  /** It wants to be the session of a farm (S70). */
  farm(rigs: number): void {
    const mining = this.#admitMining(null);
    if (mining === null) return;
    if (mining.farm !== null) {
      this.refuse(null, CODE.invalid_request, 'a farm already');
      return;
    }
    const admitted = this.#host.admitRigs(Math.min(rigs, this.#desk.limits.farmRigs));
    const farm = admitted === 0 ? null : mining.beginFarm(admitted);
    this.#host.farmOffer({ rigs: admitted, submitsPerSecond: farm?.submits.perSecond ?? 0 });
    if (farm !== null && !mining.isDraining) mining.offer(false);
  }

  /** Names have a budget of their own: a farm sends all of them after its login. */
  rig(rig: Rig): void {
    const now = this.#desk.now();
    const farm = this.mining?.farm ?? null;
    if (farm === null) {
      if (this.#admitMining(null) !== null) this.decline(null, CODE.invalid_request, 'this is no farm session');
      return;
    }
    this.lastActiveMillis = now;
    if (rig.index >= farm.rigs) {
      this.refuse(null, CODE.invalid_params, `this farm has ${farm.rigs} rigs`);
      return;
    }
    if (farm.name(rig, now)) return;
    this.#host.exceeds();
    this.fault('excess');
    this.#host.refuse(null, errorReply(CODE.too_many_requests, 'names change too often'));
  }

  farmSubmit(id: AnswerId, submit: FarmSubmit): void {
    const now = this.#desk.now();
    this.lastActiveMillis = now;
    if (this.mining !== null) this.mining.farmSubmit(id, submit, now);
    else this.#submitTooEarly(id, now);
  }

  ping(id: AnswerId, value: bigint): void {
    if (this.#admit(id)) this.#host.pong(id, value);
  }

  /** It answers nothing, since this server sends no pings: a request like others, and without an answer. */
  pong(): void {
    this.#takeRequest(this.#desk.now());
  }

  #admit(id: AnswerId): boolean {
    const now = this.#desk.now();
    this.lastActiveMillis = now;
    const isAdmitted = this.#takeRequest(now);
    if (!isAdmitted) this.#host.refuse(id, errorReply(CODE.too_many_requests, TOO_MANY_REQUESTS));
    return isAdmitted;
  }

  /** For requests that only a miner may send: null when it was refused. */
  #admitMining(id: AnswerId): Mining | null {
    if (!this.#admit(id)) return null;
    if (this.mining === null) this.refuse(id, this.#login.missing);
    return this.mining;
  }

  #takeRequest(now: number): boolean {
    const isTaken = this.#conduct.takeRequest(this.#desk.limits, now);
    if (!isTaken) {
      this.#host.exceeds();
      this.fault('excess');
    }
    return isTaken;
  }

  // --- refusals and faults --------------------------------------------------------------------------------------------------

  refuse(id: AnswerId, code: RefusalCode, message?: string): void {
    this.#host.refuse(id, errorReply(code, message));
    this.#scoreFor(code);
  }

  decline(id: AnswerId, code: RefusalCode, message: string): void {
    this.#host.refuse(id, errorReply(code, message));
  }

  reject(id: AnswerId, code: RefusalCode, message?: string, scored = true, rig?: RefusedRig): void {
    this.tally.reject(code);
    this.#host.rejected(id, errorReply(code, message));
    const { member, tally } = this;
    const sender = member === null || rig === undefined ? member : { ...member, worker: rig.worker };
    if (sender !== null) this.#host.refusedShare(sender, code, tally.isCredible && rig?.hasWorked !== false);
    if (scored) this.#scoreFor(code);
  }

  #scoreFor(code: RefusalCode): void {
    const fault = FAULTS[code];
    // Pipelined requests, sent before an earlier one was deferred.
    if (fault === undefined || (fault === 'unauthorized' && this.#login.wasPutOff)) return;
    this.fault(fault);
  }

  fault(fault: Fault): void {
    if (this.#host.isExempt) {
      // Nobody ends it, so it is read more slowly; an excess was counted where it was seen.
      if (fault !== 'excess') this.#host.exceeds();
      return;
    }
    const { limits } = this.#desk;
    const isOver = this.#conduct.fault(fault, limits, this.#desk.now());
    if (this.mining === null) this.#host.faultOfAddress(fault);
    if (isOver) this.ban(limits.bans.banMillis);
  }

  // --- the end ----------------------------------------------------------------------------------------------------------

  drain(waitMillis: number): void {
    if (this.mining?.isDraining === true) return;
    if (this.mining !== null) this.mining.isDraining = true;
    this.#host.reconnect({ host: '', port: 0, waitMillis });
  }

  ban(retryAfterMillis: number): void {
    if (this.#isBanned) return;
    this.#isBanned = true;
    this.#host.refuse(null, bannedReply(retryAfterMillis));
    this.#host.end('banned');
  }

  /** Its connection is gone. */
  leave(): void {
    this.#login.leave();
  }

  /** One without an accepted share is not worth a place on the disk. */
  keep(): void {
    if (this.tally.accepted === 0) return;
    this.#host.note(() => {
      const record = this.record(false);
      return record === null ? null : sessionEntry(record, this.#desk.now());
    });
  }

  /** What a later connection gets back; null when there is nothing worth keeping. `withSeen`: with the nonces that were judged. */
  record(withSeen = true): SessionRecord | null {
    const record = this.mining?.record(withSeen) ?? this.#login.record;
    const { score, bannedUntilMillis } = this.#conduct;
    return record === null ? null : { ...record, score, bannedUntilMillis };
  }
}
