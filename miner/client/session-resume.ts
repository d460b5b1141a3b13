/** Resumes the state of a lost connection (S-resume), and interprets a job within a session. Pure. */
import { equalBytes } from '../../protocol/bytes.ts';
import { decodeHeader } from '../../protocol/ledger/header.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import type { Job, Subscribed } from '../../protocol/stratum/messages.ts';
import { type PoolJob, SESSION_DEFAULTS, type SessionMemory, type SessionTimes, type Share } from './session-events.ts';

/** The session to ask for, while the server may still have it. */
export function sessionToResume(memory: SessionMemory | undefined, times: SessionTimes, now: number): string | null {
  return memory !== undefined && now - memory.brokenAt < times.resumeMillis ? memory.session : null;
}

export function isResumed(memory: SessionMemory | undefined, { session, noncePrefix }: Subscribed): boolean {
  return memory !== undefined && memory.session === session && equalBytes(memory.prefix, noncePrefix);
}

/** A share found while no connection is there: kept for the one that resumes the session. */
export function withShare(memory: SessionMemory, share: Share): SessionMemory | undefined {
  if (share.session !== memory.session || memory.unanswered.length >= SESSION_DEFAULTS.maxPending) return undefined;
  return { ...memory, unanswered: [...memory.unanswered, share] };
}

export function sessionJob(job: Job, { session, noncePrefix, pool }: Subscribed): PoolJob {
  return {
    job,
    pool,
    session,
    prefix: noncePrefix,
    height: decodeHeader(job.header).anchorHeight,
    work: workOfTarget(job.shareTarget),
  };
}
