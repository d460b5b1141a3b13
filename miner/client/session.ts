/**
 * One connection to a pool or bridge as a pure machine (docs/protocol/stratum.md): events and the time go in, actions
 * come out. It logs in, checks every job, matches answers to shares, measures the latency and decides when the
 * connection is of no more use. It opens no socket and reads no clock; times are milliseconds of a steady clock.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { type NetworkName, networkById } from '../../protocol/network.ts';
import type { ErrorReply } from '../../protocol/stratum/errors.ts';
import type { Job, Reconnect, Subscribed } from '../../protocol/stratum/messages.ts';
import { workOfTarget } from '../../protocol/target.ts';
import { type Refusal, refusal } from '../miner-error.ts';
import { checkJob, expectationOf, type JobExpectation } from './job-check.ts';
import type { FromServer, ToServer } from './wire.ts';

export const SESSION_DEFAULTS = {
  openMillis: 10_000,
  loginMillis: 15_000,
  /** How long a pool may take from the login to its first job before another one is tried. */
  firstJobMillis: 60_000,
  pingMillis: 20_000,
  pongMillis: 20_000,
  notReadyMillis: 5_000,
  /** Ticks further apart than this are a sleep of the machine: no deadline passed, nobody could answer. */
  sleepMillis: 10_000,
  /** Shares waiting for an answer; more means that the pool judges nothing. */
  maxPending: 4_096,
  /** A server keeps a session this long after its connection broke (S-resume). */
  resumeMillis: 120_000,
} as const;

export type SessionTimes = { readonly [K in keyof typeof SESSION_DEFAULTS]: number };

export type SessionOptions = {
  readonly network: NetworkName;
  readonly address: string;
  readonly own: Bytes;
  readonly worker: string;
  readonly password: string;
  readonly agent: string;
  readonly tag: string;
  /** Payload of --expect-payout. */
  readonly pinned: Bytes | undefined;
};

/** A share as the devices found it, already recomputed. */
export type Share = {
  readonly session: string;
  readonly jobId: number;
  readonly nonce: Bytes;
  readonly work: bigint;
  readonly device: number;
};

/** A job that passed every check, with what the session adds to it. */
export type PoolJob = {
  readonly job: Job;
  readonly session: string;
  readonly prefix: Bytes;
  /** Work of one share of it. */
  readonly work: bigint;
};

export type Verdict = 'accepted' | 'stale' | 'rejected' | 'lost';

/** What a broken connection leaves to the next one to the same server. */
export type SessionMemory = {
  readonly session: string;
  readonly prefix: Bytes;
  readonly brokenAt: number;
  readonly unanswered: readonly Share[];
};

/** A share found while no connection is there: kept for the one that resumes the session. */
export function withShare(memory: SessionMemory, share: Share): SessionMemory | undefined {
  if (share.session !== memory.session || memory.unanswered.length >= SESSION_DEFAULTS.maxPending) return undefined;
  return { ...memory, unanswered: [...memory.unanswered, share] };
}

export type SessionEvent =
  | { readonly kind: 'opened' }
  | { readonly kind: 'received'; readonly message: FromServer }
  | { readonly kind: 'garbage'; readonly reason: string }
  | { readonly kind: 'closed'; readonly refusal: Refusal }
  | { readonly kind: 'share'; readonly share: Share }
  | { readonly kind: 'tick' };

export type SessionAction =
  | { readonly kind: 'send'; readonly message: ToServer }
  | { readonly kind: 'ready'; readonly subscribed: Subscribed; readonly resumed: boolean }
  | { readonly kind: 'job'; readonly job: PoolJob }
  | {
      readonly kind: 'verdict';
      readonly share: Share;
      readonly verdict: Verdict;
      readonly error: ErrorReply | undefined;
      readonly blockId: Bytes | undefined;
    }
  | { readonly kind: 'block'; readonly blockId: Bytes }
  | { readonly kind: 'note'; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly kind: 'move'; readonly reconnect: Reconnect }
  /** The connection is to be closed; the pool is not to be asked again before `retryAfterMillis`. */
  | { readonly kind: 'end'; readonly refusal: Refusal; readonly retryAfterMillis: number };

type Phase = 'opening' | 'subscribing' | 'authorizing' | 'mining' | 'ended';
type Pending = { readonly share: Share; readonly again: boolean };

/** Answers that mean the share came too late rather than that it was wrong. */
const STALE_CODES: readonly number[] = [21];
/** A miner can check its own account: what was accepted must be credited in full. */
const CREDITED_LESS = 'the pool credited less work than was accepted';
const REFUSED_JOB_PAUSE = 60_000;
const REFUSED_LOGIN_PAUSE = 60_000;

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
  #hadJob = false;
  /** Shares of the broken connection before, and those found while this one logs in. */
  #held: Share[];
  #retryAuthorizeAt: number | undefined;
  readonly #pending = new Map<number, Pending>();
  #workSum: bigint | undefined;
  #sequence = 0;
  #pingToken = 0;
  #pingSentAt: number | undefined;
  #nextPingAt = 0;
  #latency: number | undefined;

  constructor(options: SessionOptions, now: number, memory?: SessionMemory, times: SessionTimes = SESSION_DEFAULTS) {
    this.#options = options;
    this.#times = times;
    this.#memory = memory;
    this.#held = [...(memory?.unanswered ?? [])];
    this.#tag = options.tag;
    this.#lastTick = now;
    this.#deadline = now + times.openMillis;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The server's name for this session once it is known. */
  get id(): string | undefined {
    return this.#subscribed?.session;
  }

  get latencyMillis(): number | undefined {
    return this.#latency;
  }

  get unanswered(): number {
    return this.#pending.size;
  }

  /** What the next connection may resume. Call it once the session has ended. */
  memory(now: number): SessionMemory | undefined {
    if (!this.#loggedIn || this.#subscribed === undefined)
      return this.#memory === undefined ? undefined : { ...this.#memory, unanswered: this.#held };
    return {
      session: this.#subscribed.session,
      prefix: this.#subscribed.noncePrefix,
      brokenAt: now,
      unanswered: [...this.#pending.values()].map(({ share }) => share),
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
        this.#submit({ share: event.share, again: false });
        return;
      case 'tick':
        this.#tick(now);
        return;
    }
  }

  #send(message: ToServer): void {
    this.#actions.push({ kind: 'send', message });
  }

  #note(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#actions.push({ kind: 'note', message, fields });
  }

  #end(why: Refusal, retryAfterMillis = 0): void {
    this.#phase = 'ended';
    this.#actions.push({ kind: 'end', refusal: why, retryAfterMillis });
  }

  #verdict({ share }: Pending, verdict: Verdict, error?: ErrorReply, blockId?: Bytes): void {
    this.#actions.push({ kind: 'verdict', share, verdict, error, blockId });
  }

  #subscribe(now: number): void {
    this.#phase = 'subscribing';
    this.#deadline = now + this.#times.loginMillis;
    const memory = this.#memory;
    const session = memory !== undefined && now - memory.brokenAt < this.#times.resumeMillis ? memory.session : null;
    this.#send({ kind: 'subscribe', subscribe: { agent: this.#options.agent, tag: this.#tag, session } });
  }

  #authorize(now: number): void {
    this.#phase = 'authorizing';
    this.#deadline = now + this.#times.loginMillis;
    this.#retryAuthorizeAt = undefined;
    const { address, worker, password } = this.#options;
    const username = worker === '' ? address : `${address}.${worker}`;
    this.#send({ kind: 'authorize', authorize: { username, password } });
  }

  #received(message: FromServer, now: number): void {
    switch (message.kind) {
      case 'subscribed':
        this.#onSubscribed(message.subscribed, now);
        return;
      case 'authorized':
        this.#onAuthorized(message.authorized.address, now);
        return;
      case 'job':
        this.#onJob(message.job);
        return;
      case 'accepted':
        this.#onAccepted(message.sequence, message.work, message.blockId);
        return;
      case 'acknowledged':
        this.#onAcknowledged(message.through, message.count, message.work);
        return;
      case 'rejected':
        this.#onRejected(message.sequence, message.error);
        return;
      case 'block':
        this.#actions.push({ kind: 'block', blockId: message.blockId });
        return;
      case 'refused':
        this.#onRefused(message.error, now);
        return;
      case 'pong':
        this.#onPong(message.token, now);
        return;
      case 'ping':
        this.#send({ kind: 'pong', token: message.token });
        return;
      case 'reconnect':
        this.#actions.push({ kind: 'move', reconnect: message.reconnect });
        return;
    }
  }

  #onSubscribed(subscribed: Subscribed, now: number): void {
    if (this.#phase !== 'subscribing') {
      this.#unexpected('an answer to mining.subscribe');
      return;
    }
    const { network, own, pinned } = this.#options;
    const named = networkName(subscribed.network);
    if (named !== network) {
      this.#end(
        refusal('pool_network', `the server is on ${named ?? 'an unknown network'}, your address is of ${network}`),
        REFUSED_LOGIN_PAUSE,
      );
      return;
    }
    const expected = expectationOf({ network, own, pool: subscribed.pool, pinned });
    if ('code' in expected) {
      this.#end(expected, REFUSED_LOGIN_PAUSE);
      return;
    }
    this.#subscribed = subscribed;
    this.#expected = expected;
    const memory = this.#memory;
    this.#resumed =
      memory !== undefined &&
      memory.session === subscribed.session &&
      equalBytes(memory.prefix, subscribed.noncePrefix);
    this.#authorize(now);
  }

  #onAuthorized(address: string, now: number): void {
    if (this.#phase !== 'authorizing' || this.#retryAuthorizeAt !== undefined) {
      this.#unexpected('an answer to mining.authorize');
      return;
    }
    if (address !== this.#options.address) {
      this.#end(
        refusal('pool_refused_login', `the server took another address for yours: ${address}`),
        REFUSED_LOGIN_PAUSE,
      );
      return;
    }
    this.#phase = 'mining';
    this.#deadline = now + this.#times.firstJobMillis;
    this.#nextPingAt = now;
    this.#actions.push({ kind: 'ready', subscribed: this.#subscribed as Subscribed, resumed: this.#resumed });
    this.#loggedIn = true;
    const held = this.#held;
    this.#held = [];
    for (const share of held) this.#submit({ share, again: true });
    if (this.#early !== undefined) this.#onJob(this.#early);
    this.#early = undefined;
    this.#ping(now);
  }

  #onJob(job: Job): void {
    if (this.#phase === 'authorizing') {
      this.#early = job;
      return;
    }
    if (this.#phase !== 'mining') {
      this.#unexpected('a job');
      return;
    }
    const wrong = checkJob(job, this.#expected as JobExpectation);
    if (wrong !== undefined) {
      this.#end(wrong, REFUSED_JOB_PAUSE);
      return;
    }
    this.#hadJob = true;
    const { session, noncePrefix } = this.#subscribed as Subscribed;
    this.#actions.push({
      kind: 'job',
      job: { job, session, prefix: noncePrefix, work: workOfTarget(job.shareTarget) },
    });
  }

  #submit(pending: Pending): void {
    const { share } = pending;
    if (!this.#loggedIn) {
      // Found while the login runs: a resumed session will take it, another one never knew the job.
      if (share.session !== this.#memory?.session || this.#held.length >= this.#times.maxPending)
        this.#verdict(pending, 'lost');
      else this.#held.push(share);
      return;
    }
    if (share.session !== this.#subscribed?.session) {
      this.#verdict(pending, 'lost');
      return;
    }
    if (this.#pending.size >= this.#times.maxPending) {
      this.#verdict(pending, 'lost');
      this.#end(refusal('pool_silent', `the server left ${this.#pending.size} shares unanswered`));
      return;
    }
    const sequence = ++this.#sequence;
    this.#pending.set(sequence, pending);
    this.#send({
      kind: 'submit',
      sequence,
      submit: { jobId: pending.share.jobId, nonce: pending.share.nonce },
    });
  }

  #onAccepted(sequence: number, work: bigint, blockId: Bytes | null): void {
    const pending = this.#take(sequence);
    if (pending === undefined) return;
    this.#verdict(pending, 'accepted', undefined, blockId ?? undefined);
    if (work < pending.share.work) this.#note(CREDITED_LESS, { credited: work, earned: pending.share.work });
  }

  #onAcknowledged(through: number, count: number, workSum: bigint): void {
    if (through > this.#sequence) {
      this.#unexpected('an answer to a share that was not sent');
      return;
    }
    let accepted = 0;
    let earned = 0n;
    for (const [sequence, pending] of this.#pending) {
      if (sequence > through) continue;
      this.#pending.delete(sequence);
      this.#verdict(pending, 'accepted');
      accepted++;
      earned += pending.share.work;
    }
    // The sum is that of the whole session; the first one heard is where this connection begins to count.
    const credited = this.#workSum === undefined ? earned : workSum - this.#workSum;
    this.#workSum = workSum;
    if (count < accepted || credited < earned) this.#note(CREDITED_LESS, { credited, earned, count, accepted });
  }

  #onRejected(sequence: number, error: ErrorReply): void {
    const pending = this.#take(sequence);
    if (pending === undefined) return;
    // What was sent a second time after a break was counted the first time.
    if (error.code === 22 && pending.again) this.#verdict(pending, 'accepted');
    else this.#verdict(pending, STALE_CODES.includes(error.code) ? 'stale' : 'rejected', error);
    if (error.code === 28) this.#onRefusedLogin(error);
  }

  #take(sequence: number): Pending | undefined {
    const pending = this.#pending.get(sequence);
    if (pending === undefined) this.#unexpected('an answer to a share that was not sent');
    this.#pending.delete(sequence);
    return pending;
  }

  #onRefused(error: ErrorReply, now: number): void {
    if (error.code === 28) {
      this.#onRefusedLogin(error);
      return;
    }
    if (this.#phase === 'subscribing' && error.code === 30 && this.#tag !== '') {
      this.#note('the server does not allow the tag; going on without it', { tag: this.#tag });
      this.#tag = '';
      this.#subscribe(now);
      return;
    }
    if (this.#phase === 'mining') {
      this.#note('the server reports an error', { code: error.code, text: error.message });
      return;
    }
    if (error.code === 31 || error.code === 20 || error.code === 27) {
      if (this.#phase === 'authorizing') {
        this.#note('the server is not ready; asking again', { text: error.message });
        this.#retryAuthorizeAt = now + this.#times.notReadyMillis;
        this.#deadline = Number.POSITIVE_INFINITY;
        return;
      }
      this.#end(refusal('pool_not_ready', `the server is not ready: ${error.message}`), this.#times.notReadyMillis);
      return;
    }
    this.#onRefusedLogin(error);
  }

  #onRefusedLogin(error: ErrorReply): void {
    if (error.code === 28) {
      this.#end(
        refusal('pool_banned', `the server has banned this miner: ${error.message}`),
        error.retryAfterMillis ?? REFUSED_LOGIN_PAUSE,
      );
      return;
    }
    this.#end(
      refusal('pool_refused_login', `the server refuses the login: ${error.message} (${error.code})`),
      REFUSED_LOGIN_PAUSE,
    );
  }

  #unexpected(what: string): void {
    if (this.#phase !== 'ended') this.#end(refusal('pool_garbage', `the server sent ${what} that nobody asked for`));
  }

  #ping(now: number): void {
    this.#pingToken++;
    this.#pingSentAt = now;
    this.#send({ kind: 'ping', token: this.#pingToken });
  }

  #onPong(token: number, now: number): void {
    if (this.#pingSentAt === undefined || token !== this.#pingToken) return;
    this.#latency = Math.max(0, now - this.#pingSentAt);
    this.#pingSentAt = undefined;
    this.#nextPingAt = now + this.#times.pingMillis;
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
      if (!this.#hadJob && now >= this.#deadline) {
        this.#end(refusal('pool_not_ready', 'the server sent no job'), this.#times.notReadyMillis);
        return;
      }
      if (this.#pingSentAt !== undefined) {
        if (now - this.#pingSentAt >= this.#times.pongMillis)
          this.#end(refusal('pool_silent', `the server did not answer for ${this.#times.pongMillis / 1_000} s`));
      } else if (now >= this.#nextPingAt) this.#ping(now);
      return;
    }
    if (now < this.#deadline) return;
    if (this.#phase === 'opening') this.#end(refusal('pool_unreachable', 'the connection was not made in time'));
    else this.#end(refusal('pool_silent', 'the server did not answer the login in time'));
  }

  /** The clock jumped: every wait starts anew from here, and a ping asks whether the server is still there. */
  #slept(gap: number, now: number): void {
    this.#note('the clock jumped', { millis: Math.round(gap) });
    this.#deadline += gap;
    if (this.#retryAuthorizeAt !== undefined) this.#retryAuthorizeAt = now;
    if (this.#phase === 'mining') this.#ping(now);
  }
}

function networkName(id: number): NetworkName | undefined {
  try {
    return networkById(id).name;
  } catch {
    return undefined;
  }
}
