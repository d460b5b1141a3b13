/** Totals of a session, for `mining.stats` and for the connection that resumes it. */
import { CODE, type RefusalCode, stratumError } from '../../protocol/stratum/errors.ts';
import type { RejectReason } from '../../protocol/stratum/messages.ts';

export type TallyState = {
  readonly accepted: number;
  readonly stale: number;
  readonly rejected: Readonly<Record<string, number>>;
  readonly work: bigint;
};

/** Shared by all sessions without a refused share, which are most. */
const NO_REJECTS: Readonly<Record<string, number>> = {};

export class Tally {
  #accepted = 0;
  #stale = 0;
  #rejected: Record<string, number> | null = null;
  #refused = 0;
  work = 0n;

  get accepted(): number {
    return this.#accepted;
  }

  /** Anybody can log in under every name: refusals count for a worker as far as accepted shares came with them. */
  get isCredible(): boolean {
    return this.#refused <= this.#accepted;
  }

  restore(state: TallyState): void {
    this.#accepted = state.accepted;
    this.#stale = state.stale;
    this.#rejected = { ...state.rejected };
    this.#refused = Object.values(state.rejected).reduce((sum, count) => sum + count, state.stale);
    this.work = state.work;
  }

  accept(work: bigint): void {
    this.#accepted++;
    this.work += work;
  }

  reject(code: RefusalCode): void {
    this.#refused++;
    if (code === CODE.unknown_job) {
      this.#stale++;
      return;
    }
    const reason = stratumError(code).name as RejectReason;
    this.#rejected ??= {};
    this.#rejected[reason] = (this.#rejected[reason] ?? 0) + 1;
  }

  state(): TallyState {
    return { accepted: this.#accepted, stale: this.#stale, rejected: this.#rejected ?? NO_REJECTS, work: this.work };
  }
}
