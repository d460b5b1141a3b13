/** The jobs of one session: its bodies, what was sent, and the share work that follows its speed (S51 to S53, S57, S58). */
import { equalBytes } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { GENERATION_BYTES } from '../../protocol/stratum/farm.ts';
import type { Wishes } from '../../protocol/stratum/username.ts';
import type { Farm } from '../farms/farm.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import { judgedLimit } from '../options.ts';
import { Bodies, type Body, type BodyOwner, generationAfter } from './bodies.ts';
import { nextGeneration } from './extranonce.ts';
import { JobLog, lastGeneration, type Terms } from './job-log.ts';
import type { HeldWork, SessionJobs } from './session-record.ts';
import type { SessionDesk } from './surroundings.ts';
import { hashRate, newVardiff, onShare, retarget, type Vardiff, type VardiffOptions } from './vardiff.ts';
import type { Voice } from './voice.ts';

/** A miner that finds a block at least this often is a large one. */
const LARGE_SECONDS = 60;
/** Cuts that a miner may have before this server: from another server, from a node of its own. */
const CUTS_AHEAD = 1;

export type JobsOwner = BodyOwner & {
  /** Decides which of the draws of a cut it mines on. */
  readonly draw: number;
};

export type JobsStart = {
  /** Taken from the session that is resumed, or new. */
  readonly vardiff: Vardiff | null;
  readonly jobs: SessionJobs | null;
  readonly wishes: Wishes | null;
};

export interface RunNotes {
  /** A job went out that is not the next one of a run: without a note of it, nobody could tell its terms from its id. */
  began(terms: Terms, jobId: number): void;
}

export class Jobs {
  readonly log: JobLog;
  readonly #desk: SessionDesk;
  readonly #voice: Pick<Voice, 'job' | 'farmJob' | 'end'>;
  readonly #notes: RunNotes;
  readonly #owner: JobsOwner;
  readonly #bodies: Bodies;
  readonly #wishes: Wishes | null;
  #vardiff: Vardiff;
  #pace: VardiffOptions;
  /** The newest template that a job of this connection was on. */
  #serial = -1;
  /**
   * A farm makes headers of whatever generation, on a template that it may have from any other connection, from another server of
   * the same node, or by making it as the node will. What they count for is fixed before anybody can know the cut that the
   * template builds on: another share work is for cuts after that. Else it could hash first, and then choose. Lowest first.
   */
  #held: readonly HeldWork[] = [];

  constructor(
    desk: SessionDesk,
    voice: Pick<Voice, 'job' | 'farmJob' | 'end'>,
    owner: JobsOwner,
    { vardiff, jobs, wishes }: JobsStart,
    notes: RunNotes,
  ) {
    const { limits } = desk;
    this.#desk = desk;
    this.#voice = voice;
    this.#notes = notes;
    this.#owner = owner;
    this.#wishes = wishes;
    this.#pace = limits.vardiff;
    this.#vardiff = vardiff ?? newVardiff(this.#pace, desk.now(), wishes);
    const on = desk.newest(this.draw);
    if (jobs === null) {
      this.log = new JobLog(judgedLimit(limits));
      const first = this.log.begin(generationAfter(-1, owner, on) ?? 0, this.shareWork);
      this.#bodies = new Bodies(owner, this.log, first, null, on?.origin);
    } else {
      this.log = JobLog.restore(jobs.log, judgedLimit(limits));
      const spare = jobs.spare === null ? null : (this.log.termsOf(jobs.spare) as Terms);
      const current = this.log.termsOf(jobs.current) as Terms;
      // Bodies from before a restart get no further jobs: the connection has another name now. Neither do those of another server's
      // job: the newest may be of another session of that server, where their generations are other connections'.
      this.#bodies =
        current.owner === null
          ? new Bodies(owner, this.log, current, spare)
          : new Bodies(
              owner,
              this.log,
              this.log.begin(nextGeneration(lastGeneration(current), owner.drawSteps?.()) ?? 0, this.shareWork),
              null,
            );
      // Under another name its headers are others, and nobody knew that name before.
      if (current.owner === null || equalBytes(current.owner, owner.owner)) {
        this.#held = jobs.held ?? [];
        this.#hold(current.shareWork);
      }
    }
  }

  /** Of a change of the share work: for a farm it stays this for the cuts that a miner may know. */
  #hold(work: bigint): void {
    this.#held = this.#heldWith(work);
  }

  /** What templates on those cuts count for, where it was this work that jobs on the newest would have had. */
  #heldWith(work: bigint): readonly HeldWork[] {
    const { toldCuts } = this.#desk;
    const through = toldCuts + CUTS_AHEAD;
    // The next template may be on a cut of before (a node that is behind serves), or the newest may be (a dataset is built).
    const held = this.#held.filter((each) => each.through > toldCuts - REGISTRATION_WINDOW);
    return held.at(-1)?.through === through ? held : [...held, { work, through }];
  }

  #workOn({ told }: ServedTemplate): bigint {
    const held = this.#isHeld ? this.#held.find(({ through }) => told <= through) : undefined;
    return held?.work ?? this.shareWork;
  }

  /**
   * Also where a session that was a farm's goes on as a plain one: hashes on all generations earn as a farm's, and for the one that
   * is drawn it could choose.
   */
  get #isHeld(): boolean {
    return this.#bodies.room !== null || this.log.hasFarmJobs;
  }

  get draw(): number {
    return this.#owner.draw;
  }

  get hashRate(): number {
    return hashRate(this.#vardiff);
  }

  get vardiff(): Vardiff {
    return this.#vardiff;
  }

  get shareWork(): bigint {
    const { work } = this.#vardiff;
    const floor = this.#desk.limits.vardiff.minWork;
    const { fixedWork, minWork } = this.#wishes ?? { fixedWork: null, minWork: null };
    if (fixedWork !== null) return fixedWork > floor ? fixedWork : floor;
    return minWork !== null && minWork > work ? minWork : work;
  }

  /** Whether its share work is settled, in use, and below what the template allows: only then does it control the rate of shares. */
  get isPaced(): boolean {
    const isSettled = this.#vardiff.phase === 'settled' || this.#wishes?.fixedWork != null;
    const template = this.#desk.newest(this.draw);
    if (!isSettled || template === undefined) return false;
    return this.#workOn(template) === this.shareWork && this.shareWork < template.hardest.work;
  }

  /** Whether the newest template has gone out on this connection. */
  get isCurrent(): boolean {
    const template = this.#desk.newest(this.draw);
    return template === undefined || this.#serial >= template.serial;
  }

  /** From now on its jobs are a farm's (S70); `isNew`: its share work follows from nothing yet. */
  farm(farm: Farm, isNew: boolean): void {
    const { limits } = this.#desk;
    this.#hold(this.shareWork);
    this.#bodies.room = farm.room;
    this.log.limit = judgedLimit({ ...limits, submits: farm.submits });
    this.#pace = farm.pace(limits.vardiff);
    if (isNew) this.#vardiff = newVardiff(this.#pace, this.#desk.now(), this.#wishes);
  }

  /** Sends a job on the newest template, and before the first one a large miner's spare (S57). */
  offer(clean: boolean): void {
    const template = this.#desk.newest(this.draw);
    if (template === undefined) return;
    const shareWork = this.#workOn(template);
    const isFirst = !this.log.hasJobOn(template.serial);
    const isOneHeader = template.origin?.firstGeneration === null;
    // There is no other header to send, and a search of this one would begin again.
    if (isOneHeader && !isFirst) return;
    // The same template would count differently for two generations, and a farm has hashed on both.
    if (this.#bodies.room !== null && this.log.hasPlainJobOn(template.serial, shareWork)) return;
    const isLarge = this.#bodies.room === null && isFirst && !isOneHeader && this.#isLarge(template);
    const spare = isLarge ? this.#bodies.keepSpare(this.#owner, shareWork, template) : null;
    const body = this.#bodies.forJob(this.#owner, shareWork, template);
    if (this.#bodies.isOver) {
      this.#voice.end('this connection has used all its bodies');
      return;
    }
    if (spare !== null) this.#send(template, spare, clean);
    this.#send(template, body, clean && spare === null);
  }

  /** Uses the next id of the template; if none is left, the miner keeps its current job until the next template. */
  #send(template: ServedTemplate, { terms, extranonce, rewardRoot }: Body, clean: boolean): void {
    const before = this.#desk.before(this.draw)?.serial;
    const run = this.log.newestRun;
    const jobId = this.log.send(template.serial, before, terms);
    if (jobId === undefined) return;
    if (this.log.newestRun !== run) this.#notes.began(terms, jobId);
    this.#serial = template.serial;
    const shareTarget = template.termsFor(terms.shareWork).target;
    const { payout } = this.#owner;
    if (terms.farm !== null) {
      const extranonceHead = extranonce.subarray(0, -GENERATION_BYTES);
      const firstGeneration = terms.generation;
      this.#voice.farmJob(template, { jobId, shareTarget, payout, extranonceHead, firstGeneration, clean });
      return;
    }
    this.#voice.job(template, { jobId, rewardRoot, shareTarget, payout, extranonce, clean });
  }

  /** Whether it finds blocks so often that waiting for a job after each would waste work. */
  #isLarge({ blockWork }: ServedTemplate): boolean {
    return this.#vardiff.phase === 'settled' && this.hashRate * LARGE_SECONDS >= Number(blockWork);
  }

  bodyOf(terms: Terms, { origin }: ServedTemplate): Body {
    return this.#bodies.find(this.#owner, terms, origin);
  }

  accepted(work: bigint, nowMillis: number): void {
    this.#vardiff = onShare(this.#vardiff, work, nowMillis, this.#pace);
  }

  /** Called after shares and about once a second: a changed share work goes out with a job of its own, and to a farm with a later template. */
  retarget(nowMillis: number): void {
    const before = this.shareWork;
    this.#vardiff = retarget(this.#vardiff, nowMillis, this.#pace);
    if (this.shareWork === before) return;
    this.#hold(before);
    if (!this.#isHeld) this.offer(false);
  }

  /** Drops what concerns only jobs that no submit can name any more. */
  forget(oldestSerial: number): void {
    this.log.forget(oldestSerial, [this.#bodies.current.terms, this.#bodies.spare?.terms]);
  }

  /** For the connection that resumes the session; `withSeen`: with the nonces that were judged. */
  state(withSeen = true): SessionJobs {
    return {
      log: this.log.state(withSeen),
      payout: this.#owner.payout,
      current: this.#bodies.current.terms.generation,
      spare: this.#bodies.spare?.terms.generation ?? null,
      // It may not have had its job on the newest one: that one counts the same for whoever resumes it.
      held: this.#heldWith(this.shareWork),
    };
  }
}
