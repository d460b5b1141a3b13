/** All that a resumed session gets back (docs/protocol/stratum.md, S55 and S59). */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Score } from './ban-score.ts';
import type { JobLogState } from './job-log.ts';
import type { TallyState } from './tally.ts';
import type { Vardiff } from './vardiff.ts';

/** What was sent and judged: valid in the process that served the session, and in the next one of its data directory. */
export type SessionJobs = {
  readonly log: JobLogState;
  /** Whom they pay. */
  readonly payout: Bytes;
  /** Generations of the current body and the spare. */
  readonly current: number;
  readonly spare: number | null;
  /** Absent in records of before there was one. */
  readonly held?: readonly HeldWork[];
};

/** The share work of a farm's jobs on templates of cuts up to this place (jobs.ts). */
export type HeldWork = { readonly work: bigint; readonly through: number };

export type SessionRecord = TallyState & {
  readonly id: string;
  /** The process that served it last, or this one, which has read its jobs from the disk (kept-sessions.ts). */
  readonly bootId: Bytes;
  readonly service: string;
  readonly owner: Bytes;
  readonly prefix: number;
  readonly tag: string;
  readonly account: Bytes;
  readonly worker: string;
  readonly vardiff: Vardiff | null;
  readonly score: Score;
  /** 0 when it is not banned. */
  readonly bannedUntilMillis: number;
  readonly jobs: SessionJobs | null;
};
