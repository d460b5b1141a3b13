/**
 * Which refusals of shares show something against a pool, so that it is left. An honest pool refuses a share as late when its job was
 * superseded for longer than the grace, or when the chain changed. So do shares that were on their way then, that waited for
 * their turn, or that a link held up: none of these is evidence. A refusal as late is, where the next job cannot have been sent
 * long before the answer came, and no clean job comes soon after; but jobs may be behind answers inside a server, so these count
 * only in a row. Any other refusal weighs as much as four accepted shares: a pool that takes a share now and then is no better.
 * Where a pool makes all of them late, is always busy, or answers nothing and ends the connection, time shows it. What is known of a
 * pool holds for all connections to it, one after the other. Pure; the time is passed in.
 */
import { CODE } from '../../protocol/stratum/errors.ts';
import type { SessionTimes } from './session-events.ts';

/** What was known of a share when it was sent. */
export type Sending = {
  readonly jobId: number;
  readonly atMillis: number;
  /** Its job was superseded for a while. */
  readonly isLate: boolean;
  /** Something that was sent before had no answer for a while: the link may stand still. */
  readonly isStalled: boolean;
};

/** `nextMillis`: when the next job came; `nextFrom`: it was not sent before that. */
type KnownJob = { readonly jobId: number; nextMillis: number; nextFrom: number };

/** With an honest pool older ones are late; one that sends more has made it so itself. */
const MOST_JOBS = 64;

/** Answers that say nothing about the share: the server was busy, not ready, or has banned us. */
const NO_VERDICT_CODES: readonly number[] = [CODE.internal, CODE.too_many_requests, CODE.banned, CODE.not_ready];

/** Of what an accepted share takes back. */
const FORGIVEN = 1 / 4;
/** A share that has no answer for longer has none. */
export const ANSWER_MILLIS = 60_000;

export class Refusals {
  readonly #times: Pick<SessionTimes, 'lateMillis' | 'maxRefused' | 'jobMillis'>;
  /** The newest last. */
  #jobs: readonly KnownJob[] = [];
  /** What came last from the server was not sent before that: something was answered that was sent then. */
  #answered = Number.NEGATIVE_INFINITY;
  /** Those that are evidence, less what was forgiven. */
  #counted = 0;
  /** Of those as late, since the last accepted share: those that are evidence, and when those came that are unless a clean job comes. */
  #late = 0;
  #recent: readonly number[] = [];
  /** Answers since a moment, late shares left out. */
  #taken = 0;
  #untaken = 0;
  #sinceMillis: number | undefined;

  constructor(times: Pick<SessionTimes, 'lateMillis' | 'maxRefused' | 'jobMillis'>) {
    this.#times = times;
  }

  /** Another connection: its jobs are others, and what ended the one before may have ended its jobs too. */
  connected(): void {
    this.#jobs = [];
    this.#recent = [];
    this.#answered = Number.NEGATIVE_INFINITY;
  }

  job({ jobId, clean }: { readonly jobId: number; readonly clean: boolean }, now: number): void {
    this.#settle(now);
    const newest = this.#jobs.at(-1);
    if (newest !== undefined) [newest.nextMillis, newest.nextFrom] = [now, this.#answered];
    if (clean) {
      // An honest pool refuses all of before at once.
      for (const job of this.#jobs) job.nextFrom = Number.NEGATIVE_INFINITY;
      this.#recent = [];
    }
    const added = { jobId, nextMillis: Number.POSITIVE_INFINITY, nextFrom: Number.POSITIVE_INFINITY };
    this.#jobs = [...this.#jobs, added].slice(-MOST_JOBS);
  }

  /** `oldest`: when that was sent that waits for an answer for longest. */
  sending(jobId: number, oldest: number | undefined, now: number): Sending {
    const { lateMillis } = this.#times;
    const job = this.#jobs.findLast((each) => each.jobId === jobId);
    const isLate = job !== undefined && now - job.nextMillis > lateMillis;
    return { jobId, atMillis: now, isLate, isStalled: oldest !== undefined && now - oldest > lateMillis / 2 };
  }

  /** What was sent at this time was answered. */
  answered(sentMillis: number): void {
    this.#answered = Math.max(this.#answered, sentMillis);
  }

  accepted(): void {
    this.#taken++;
    this.#counted = Math.max(0, this.#counted - FORGIVEN);
    this.#late = 0;
    this.#recent = [];
  }

  /**
   * One could not be sent: the server takes fewer than are found at the target that it set, or ended its job before a device could
   * take it up.
   */
  lost(): void {
    this.#untaken++;
  }

  /** A connection ended with these unanswered: those are not taken where the server answered what was sent later. */
  left(unanswered: readonly Sending[]): void {
    this.#untaken += unanswered.filter(({ atMillis }) => atMillis < this.#answered).length;
  }

  refused({ jobId, isLate, isStalled }: Sending, code: number, now: number): void {
    if (code === CODE.unknown_job && isLate) return;
    this.#untaken++;
    if (NO_VERDICT_CODES.includes(code)) return;
    const nextFrom = this.#jobs.findLast((each) => each.jobId === jobId)?.nextFrom ?? Number.NEGATIVE_INFINITY;
    if (code !== CODE.unknown_job) this.#counted++;
    else if (!isStalled && now - nextFrom <= this.#times.lateMillis) this.#recent = [...this.#recent, now];
  }

  #settle(now: number): void {
    const settled = this.#recent.findLastIndex((at) => now - at > this.#times.lateMillis) + 1;
    this.#late += settled;
    if (settled > 0) this.#recent = this.#recent.slice(settled);
  }

  /** Of what it did with shares, where that is too much; `unanswered`: shares that have no answer for `ANSWER_MILLIS`. */
  tooMany(unanswered: () => number, now: number): string | undefined {
    this.#settle(now);
    const { maxRefused, jobMillis } = this.#times;
    this.#sinceMillis ??= now;
    const isEvident = this.#counted + this.#late >= maxRefused;
    if (!isEvident && now - this.#sinceMillis < jobMillis) return undefined;
    const [taken, untaken] = [this.#taken, this.#untaken + unanswered()];
    if (!isEvident && taken + untaken < maxRefused) return undefined;
    this.#sinceMillis = now;
    this.#taken = this.#untaken = 0;
    if (!isEvident && untaken <= taken) return undefined;
    this.#counted = this.#late = 0;
    this.#recent = [];
    return `of ${taken + untaken} shares the server took ${taken}`;
  }
}
