/**
 * One connection to a pool or bridge as a pure machine (docs/protocol/stratum.md): events and the time go in, actions
 * come out. It logs in, checks every job, matches answers to shares, measures the latency and decides when the
 * connection should end. It opens no socket and reads no clock; times are milliseconds of a monotonic clock.
 */
import { type Bytes, bigintFromBytesBE } from '../../protocol/bytes.ts';
import { TARGET_OFFSET } from '../../protocol/ledger/header.ts';
import { CODE, type ErrorReply } from '../../protocol/stratum/errors.ts';
import { type FarmJob, type FarmOffer, jobOfFarm } from '../../protocol/stratum/farm.ts';
import type { Job, Subscribed } from '../../protocol/stratum/messages.ts';
import { formatUsername, withRate } from '../../protocol/stratum/username.ts';
import { type Refusal, refusal } from '../miner-error.ts';
import { FarmRigs } from './farm-rigs.ts';
import { FloodMeter } from './flood.ts';
import { Heartbeat } from './heartbeat.ts';
import { checkGeneration, checkJob, expectationOf, type JobExpectation } from './job-check.ts';
import { type Pending, PendingShares } from './pending-shares.ts';
import { ANSWER_MILLIS, Refusals } from './refusals.ts';
import { type Ending, isForNow, overdue, REFUSED_PAUSE, refusedLogin } from './session-ends.ts';
import {
  type PoolJob,
  SESSION_DEFAULTS,
  type SessionAction,
  type SessionEvent,
  type SessionMemory,
  type SessionOptions,
  type SessionTimes,
  type Share,
  type Verdict,
} from './session-events.ts';
import { isResumed, sessionJob, sessionToResume } from './session-resume.ts';
import { SubmitPace } from './submit-pace.ts';
import type { FromServer, ToServer } from './wire.ts';

type Phase = 'opening' | 'subscribing' | 'authorizing' | 'mining' | 'ended';
/** A miner can check its own account: accepted shares must be credited in full. */
const STRAY_ANSWER = 'an answer to a share that was not sent';
const CREDITED_LESS = 'the pool credited less work than was accepted';

export class Session {
  readonly #options: SessionOptions;
  readonly #times: SessionTimes;
  readonly #memory: SessionMemory | undefined;
  #phase: Phase = 'opening';
  #deadline: number;
  #lastTick: number;
  #actions: SessionAction[] = [];
  #tag: string;
  #subscribed: Subscribed | undefined;
  #expected: JobExpectation | undefined;
  #early: Job | undefined;
  #resumed = false;
  #loggedIn = false;
  /** When the last job came. */
  #jobAt: number | undefined;
  /** Shares of the broken connection before, and those found while this one logs in. */
  #held: Share[];
  /** Whether the newest one's share target could be harder: that of a block is the hardest. */
  #isEasy = false;
  /** Set in a farm session; `asked` until the server has said whether it is one. */
  #farm: FarmRigs | 'asked' | undefined;
  /** Of a farm, as the server offered. */
  #submitsPerSecond = 0;
  /** It has no generations left, so that the next connection begins a new one. */
  #isUsedUp = false;
  #retryAuthorizeAt: number | undefined;
  #unreadySince: number | undefined;
  readonly #pending = new PendingShares();
  readonly #refusals: Refusals;
  readonly #pace = new SubmitPace();
  readonly #heartbeat: Heartbeat;
  readonly #flood: FloodMeter;

  /** `refusals`: what is known of the pool from the connections before. */
  constructor(
    options: SessionOptions,
    now: number,
    memory?: SessionMemory,
    times: SessionTimes = SESSION_DEFAULTS,
    refusals = new Refusals(times),
  ) {
    this.#options = options;
    this.#times = times;
    this.#memory = memory;
    this.#held = [...(memory?.unanswered ?? [])];
    this.#tag = options.tag;
    this.#lastTick = now;
    this.#deadline = now + times.openMillis;
    this.#heartbeat = new Heartbeat(times);
    this.#refusals = refusals;
    refusals.connected();
    this.#flood = new FloodMeter(now);
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The server's name for this session once it is known. */
  get id(): string | undefined {
    return this.#subscribed?.session;
  }

  get latencyMillis(): number | undefined {
    return this.#heartbeat.latencyMillis;
  }

  get unanswered(): number {
    return this.#pending.size;
  }

  /** Shares that wait for their turn to be sent. */
  get waiting(): number {
    return this.#pace.waiting.length;
  }

  /** Its connection is over, whoever ended it. */
  left(): void {
    this.#refusals.left(this.#pending.sendings);
  }

  /** What the next connection may resume. Call it once the session has ended. */
  memory(now: number): SessionMemory | undefined {
    if (this.#isUsedUp) return undefined;
    if (!this.#loggedIn || this.#subscribed === undefined)
      return this.#memory === undefined ? undefined : { ...this.#memory, unanswered: this.#held };
    return {
      session: this.#subscribed.session,
      prefix: this.#subscribed.noncePrefix,
      brokenAt: now,
      unanswered: [...this.#held, ...this.#pending.shares, ...this.#pace.waiting.map(({ share }) => share)],
    };
  }

  handle(event: SessionEvent, now: number): SessionAction[] {
    this.#actions = [];
    if (this.#phase !== 'ended') this.#dispatch(event, now);
    else if (event.kind === 'share') this.#verdict({ share: event.share, again: false }, 'lost');
    return this.#actions;
  }

  #dispatch(event: SessionEvent, now: number): void {
    switch (event.kind) {
      case 'opened':
        if (this.#phase === 'opening') this.#subscribe(now);
        return;
      case 'received':
        this.#received(event.message, now);
        return;
      case 'garbage':
        this.#end(refusal('pool_garbage', `the server sent what is not the protocol: ${event.reason}`));
        return;
      case 'closed':
        this.#end(event.refusal);
        return;
      case 'share':
        this.#submit({ share: event.share, again: false }, now);
        return;
      case 'tick':
        this.#tick(now);
        return;
    }
  }

  #send(message: ToServer): void {
    // A pong is requested by the server: it does not refill the bucket.
    if (message.kind !== 'pong') this.#flood.sent();
    this.#actions.push({ kind: 'send', message });
  }

  #note(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#actions.push({ kind: 'note', message, fields });
  }

  #end(why: Refusal, retryAfterMillis = 0): void {
    this.#phase = 'ended';
    this.#actions.push({ kind: 'end', refusal: why, retryAfterMillis });
  }

  #endBy({ refusal: why, retryAfterMillis }: Ending): void {
    this.#end(why, retryAfterMillis);
  }

  #verdict({ share }: Pending, verdict: Verdict, error?: ErrorReply, blockId?: Bytes, told?: bigint): void {
    this.#actions.push({ kind: 'verdict', share, verdict, error, blockId, told });
  }

  #subscribe(now: number): void {
    this.#phase = 'subscribing';
    this.#deadline = now + this.#times.loginMillis;
    const session = sessionToResume(this.#memory, this.#times, now);
    this.#send({ kind: 'subscribe', subscribe: { agent: this.#options.agent, tag: this.#tag, session } });
  }

  #authorize(now: number): void {
    this.#phase = 'authorizing';
    this.#deadline = now + this.#times.loginMillis;
    this.#retryAuthorizeAt = undefined;
    const { address, worker, password: wishes, expectedRate } = this.#options;
    const username = formatUsername(address, worker);
    const password = typeof wishes === 'string' ? wishes : wishes();
    this.#send({ kind: 'authorize', authorize: { username, password: withRate(password, expectedRate?.()) } });
  }

  #received(message: FromServer, now: number): void {
    if (!this.#flood.received(now)) {
      this.#end(refusal('pool_flood', 'the server sends more than it was asked for, without end'), REFUSED_PAUSE);
      return;
    }
    switch (message.kind) {
      case 'subscribed':
        this.#onSubscribed(message.subscribed, now);
        return;
      case 'authorized':
        this.#onAuthorized(message.authorized.address, now);
        return;
      case 'job':
        this.#onJob(message.job, now);
        return;
      case 'accepted':
        this.#onAccepted(message.sequence, message.work, message.blockId);
        return;
      case 'acknowledged':
        this.#onAcknowledged(message.through, message.count, message.work);
        return;
      case 'rejected':
        this.#onRejected(message.sequence, message.error, now);
        return;
      case 'block':
        this.#pending.found(message.sequence, message.blockId);
        return;
      case 'refused':
        this.#onRefused(message.error, now);
        return;
      case 'pong':
        this.#refusals.answered(this.#heartbeat.pong(message.token, now) ?? Number.NEGATIVE_INFINITY);
        return;
      case 'ping':
        this.#send({ kind: 'pong', token: message.token });
        return;
      case 'reconnect':
        this.#actions.push({ kind: 'move', reconnect: message.reconnect });
        return;
      case 'farmOffer':
        this.#onFarmOffer(message.offer, now);
        return;
      case 'farmJob':
        this.#onFarmJob(message.job, now);
        return;
      case 'receiptHead':
        return;
      case 'receipts':
      case 'receipt':
        this.#actions.push(message);
        return;
    }
  }

  #onSubscribed(subscribed: Subscribed, now: number): void {
    if (this.#phase !== 'subscribing') {
      this.#unexpected('an answer to mining.subscribe');
      return;
    }
    const { network, own, pinned } = this.#options;
    const expected = expectationOf({ network, own, named: subscribed.network, pool: subscribed.pool, pinned });
    if ('code' in expected) {
      this.#end(expected, REFUSED_PAUSE);
      return;
    }
    this.#subscribed = subscribed;
    this.#expected = expected;
    this.#resumed = isResumed(this.#memory, subscribed);
    if (this.#memory !== undefined && !this.#resumed) this.#actions.push({ kind: 'forgotten' });
    this.#authorize(now);
  }

  #onAuthorized(address: string, now: number): void {
    if (this.#phase !== 'authorizing' || this.#retryAuthorizeAt !== undefined) {
      this.#unexpected('an answer to mining.authorize');
      return;
    }
    if (address !== this.#options.address) {
      this.#end(refusal('pool_refused_login', `the server took another address for yours: ${address}`), REFUSED_PAUSE);
      return;
    }
    this.#phase = 'mining';
    this.#deadline = now + this.#times.firstJobMillis;
    this.#actions.push({ kind: 'ready', subscribed: this.#subscribed as Subscribed, resumed: this.#resumed });
    this.#loggedIn = true;
    const { farmRigs: rigs } = this.#options;
    if (rigs !== undefined) {
      this.#farm = 'asked';
      this.#send({ kind: 'farm', rigs });
    }
    if (this.#options.receipts === true) this.#send({ kind: 'receipts' });
    if (rigs === undefined) this.#proceed(now);
    this.#ping(now);
  }

  /** Sends what was held until it was known how. */
  #proceed(now: number): void {
    const held = this.#held;
    this.#held = [];
    for (const share of held) this.#submit({ share, again: true }, now);
    if (this.#early !== undefined) this.#onJob(this.#early, now);
    this.#early = undefined;
  }

  #onFarmOffer({ rigs: offered, submitsPerSecond }: FarmOffer, now: number): void {
    if (this.#farm !== 'asked') {
      this.#unexpected('an offer for a farm');
      return;
    }
    const rigs = Math.min(offered, this.#options.farmRigs ?? 0);
    this.#farm = rigs === 0 ? undefined : new FarmRigs(rigs);
    this.#flood.farm(rigs);
    if (rigs > 0) {
      this.#early = undefined;
      this.#pace.perSecond = submitsPerSecond;
      this.#submitsPerSecond = submitsPerSecond;
    }
    this.#proceed(now);
  }

  #onFarmJob(farm: FarmJob, now: number): void {
    if (typeof this.#farm !== 'object') {
      this.#unexpected('a farm job');
      return;
    }
    const job = jobOfFarm(farm, farm.firstGeneration);
    const usedUp = checkGeneration(farm);
    if (usedUp !== undefined) {
      this.#isUsedUp = true;
      for (const share of this.#pending.shares) this.#verdict({ share, again: false }, 'lost');
      for (const pending of this.#pace.takeWaiting()) this.#verdict(pending, 'lost');
      this.#end(usedUp, REFUSED_PAUSE);
      return;
    }
    this.#takeJob(job, now, { farm, submitsPerSecond: this.#submitsPerSecond });
  }

  #onJob(job: Job, now: number): void {
    if (this.#phase === 'authorizing' || this.#farm === 'asked') {
      this.#early = job;
      return;
    }
    // Sent before the server had read the request for a farm.
    if (this.#farm !== undefined) return;
    if (this.#phase !== 'mining') {
      this.#unexpected('a job');
      return;
    }
    this.#takeJob(job, now);
  }

  #takeJob(job: Job, now: number, ofFarm: Pick<PoolJob, 'farm' | 'submitsPerSecond'> = {}): void {
    const wrong = checkJob(job, this.#expected as JobExpectation);
    if (wrong !== undefined) {
      this.#end(wrong, REFUSED_PAUSE);
      return;
    }
    this.#jobAt = now;
    this.#isEasy = job.shareTarget > bigintFromBytesBE(job.header.subarray(TARGET_OFFSET, TARGET_OFFSET + 32));
    this.#refusals.job(job, now);
    this.#actions.push({ kind: 'job', job: { ...sessionJob(job, this.#subscribed as Subscribed), ...ofFarm } });
  }

  #submit(pending: Pending, now: number): void {
    const { share } = pending;
    if (!this.#loggedIn || this.#farm === 'asked') {
      // Found during the login: a resumed session will accept it, a new one does not know the job.
      if (share.session !== this.#memory?.session || this.#held.length >= this.#times.maxPending)
        this.#verdict(pending, 'lost');
      else this.#held.push(share);
      return;
    }
    // A session that was a farm before and is none now, or the other way round, has other headers.
    if (share.session !== this.#subscribed?.session || (share.farm !== undefined) !== (this.#farm !== undefined)) {
      this.#verdict(pending, 'lost');
      return;
    }
    if (this.#pending.size >= this.#times.maxPending) {
      this.#verdict(pending, 'lost');
      this.#end(refusal('pool_silent', `the server left ${this.#pending.size} shares unanswered`));
      return;
    }
    if (this.#pace.waiting.length > 0 || !this.#pace.take(now)) {
      const hasRoom = this.#pending.size + this.#pace.waiting.length < this.#times.maxPending;
      const givenUp = hasRoom ? this.#pace.wait(pending) : pending;
      if (givenUp === undefined) return;
      if (this.#isEasy) this.#refusals.lost();
      this.#verdict(givenUp, 'lost');
      return;
    }
    const { jobId, nonce } = share;
    // Judged when it is sent: one that waited for its turn may be late through this side alone.
    const oldest = Math.min(this.#pending.oldest ?? now, this.#heartbeat.sentAt ?? now);
    const sequence = this.#pending.add({ ...pending, sending: this.#refusals.sending(jobId, oldest, now) });
    if (share.farm === undefined || typeof this.#farm !== 'object') {
      this.#send({ kind: 'submit', sequence, submit: { jobId, nonce } });
      return;
    }
    const { index, news } = this.#farm.of(share.farm.rig, now);
    if (news !== undefined) this.#send({ kind: 'rig', rig: news });
    const { generation } = share.farm;
    this.#send({ kind: 'farmSubmit', sequence, submit: { jobId, generation, rig: index, nonce } });
  }

  #onAccepted(sequence: number, work: bigint, blockId: Bytes | null): void {
    const found = this.#pending.accepted(sequence, work);
    if (found !== undefined) {
      this.#accepted(found.pending);
      this.#verdict(found.pending, 'accepted', undefined, blockId ?? undefined, work);
    } else this.#unexpected(STRAY_ANSWER);
    this.#flood.answered();
    if (found?.short !== undefined) this.#note(CREDITED_LESS, found.short);
  }

  #onAcknowledged(through: number, count: number, workSum: bigint): void {
    const found = this.#pending.acknowledged(through, count, workSum);
    if (found === undefined) {
      this.#unexpected(STRAY_ANSWER);
      return;
    }
    for (const pending of found.pending) {
      this.#accepted(pending);
      this.#verdict(pending, 'accepted', undefined, pending.blockId, pending.share.work);
    }
    if (found.short !== undefined) this.#note(CREDITED_LESS, { ...found.short, count, accepted: found.pending.length });
  }

  #accepted({ sending }: Pending): void {
    this.#refusals.accepted();
    if (sending !== undefined) this.#refusals.answered(sending.atMillis);
  }

  #onRejected(sequence: number, error: ErrorReply, now: number): void {
    const found = this.#pending.rejected(sequence, error);
    if (found === undefined) {
      this.#unexpected(STRAY_ANSWER);
      return;
    }
    this.#flood.answered();
    this.#verdict(found.pending, found.verdict, found.verdict === 'accepted' ? undefined : error);
    const { sending, again } = found.pending;
    if (sending !== undefined) {
      // Those of the connection before may all be late.
      if (!again) this.#refusals.refused(sending, error.code, now);
      this.#refusals.answered(sending.atMillis);
    }
    if (error.code === CODE.banned) this.#endBy(refusedLogin(error));
    else this.#countRefusals(now);
  }

  #countRefusals(now: number): void {
    const why = this.#refusals.tooMany(() => this.#pending.sentBefore(now - ANSWER_MILLIS), now);
    if (why !== undefined) this.#end(refusal('pool_rejects', why), REFUSED_PAUSE);
  }

  #onRefused(error: ErrorReply, now: number): void {
    if (error.code === CODE.banned) {
      this.#endBy(refusedLogin(error));
      return;
    }
    if (this.#phase === 'subscribing' && error.code === CODE.bad_tag && this.#tag !== '') {
      this.#note('the server does not allow the tag; going on without it', { tag: this.#tag });
      this.#tag = '';
      this.#subscribe(now);
      return;
    }
    if (this.#phase === 'mining' && this.#farm === 'asked') {
      this.#note('the server knows no farms', { code: error.code, text: error.message });
      this.#farm = undefined;
      this.#proceed(now);
      return;
    }
    if (this.#phase === 'mining') {
      this.#note('the server reports an error', { code: error.code, text: error.message });
      return;
    }
    if (isForNow(error)) {
      this.#unreadySince ??= now;
      if (this.#phase === 'authorizing' && now - this.#unreadySince < this.#times.unreadyMillis) {
        // No request in between: it was already reported.
        if (this.#retryAuthorizeAt !== undefined) return;
        this.#note('the server is not ready; asking again', { text: error.message });
        this.#retryAuthorizeAt = now + this.#times.notReadyMillis;
        this.#deadline = Number.POSITIVE_INFINITY;
        return;
      }
      this.#end(refusal('pool_not_ready', `the server is not ready: ${error.message}`), this.#times.notReadyMillis);
      return;
    }
    this.#endBy(refusedLogin(error));
  }

  #unexpected(what: string): void {
    if (this.#phase !== 'ended') this.#end(refusal('pool_garbage', `the server sent ${what} that nobody asked for`));
  }

  #ping(now: number): void {
    this.#send({ kind: 'ping', token: this.#heartbeat.ping(now) });
  }

  #tick(now: number): void {
    const gap = now - this.#lastTick;
    this.#lastTick = now;
    if (gap < 0 || gap > this.#times.sleepMillis) {
      this.#slept(gap, now);
      return;
    }
    if (this.#phase === 'authorizing' && this.#retryAuthorizeAt !== undefined) {
      if (now >= this.#retryAuthorizeAt) this.#authorize(now);
      return;
    }
    if (this.#phase === 'mining') {
      const late = overdue(
        { jobAt: this.#jobAt, firstJobBy: this.#deadline, heartbeat: this.#heartbeat },
        this.#times,
        now,
      );
      if (late !== undefined) this.#endBy(late);
      else {
        for (const pending of this.#pace.takeWaiting()) this.#submit(pending, now);
        if (this.#heartbeat.isDue(now)) this.#ping(now);
        this.#countRefusals(now);
      }
      return;
    }
    if (now < this.#deadline) return;
    if (this.#phase === 'opening') this.#end(refusal('pool_unreachable', 'the connection was not made in time'));
    else this.#end(refusal('pool_silent', 'the server did not answer the login in time'));
  }

  /** The clock jumped: every wait starts again, and a ping checks whether the server still answers. */
  #slept(gap: number, now: number): void {
    this.#note('the clock jumped', { millis: Math.round(gap) });
    this.#deadline += gap;
    if (this.#jobAt !== undefined) this.#jobAt += gap;
    if (this.#retryAuthorizeAt !== undefined) this.#retryAuthorizeAt = now;
    if (this.#phase === 'mining') this.#ping(now);
  }
}
