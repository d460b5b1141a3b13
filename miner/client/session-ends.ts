/** Why a connection to a pool is abandoned, what that says of the pool, and when it is tried again. Pure. */
import { CODE, type ErrorReply } from '../../protocol/stratum/errors.ts';
import { type Refusal, refusal } from '../miner-error.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { SessionTimes } from './session-events.ts';

export type Ending = { readonly refusal: Refusal; readonly retryAfterMillis: number };

/** A server that was refused, or that refused us, is tried again after this time: by then it may have been fixed. */
export const REFUSED_PAUSE = 60_000;

export function refusedLogin({ code, message, retryAfterMillis }: ErrorReply): Ending {
  if (code !== CODE.banned)
    return {
      refusal: refusal('pool_refused_login', `the server refuses the login: ${message} (${code})`),
      retryAfterMillis: REFUSED_PAUSE,
    };
  return {
    refusal: refusal('pool_banned', `the server has banned this miner: ${message}`),
    retryAfterMillis: retryAfterMillis ?? REFUSED_PAUSE,
  };
}

/** The same login may be accepted a little later. */
export const isForNow = ({ code }: ErrorReply): boolean =>
  code === CODE.not_ready || code === CODE.internal || code === CODE.too_many_requests;

export type Waits = {
  /** When the last job came. */
  readonly jobAt: number | undefined;
  readonly firstJobBy: number;
  readonly heartbeat: Pick<Heartbeat, 'isOverdue'>;
};

/** While mining: whether the server answers and follows the chain. */
export function overdue({ jobAt, firstJobBy, heartbeat }: Waits, times: SessionTimes, now: number): Ending | undefined {
  const { jobMillis, notReadyMillis, pongMillis } = times;
  if (jobAt === undefined && now >= firstJobBy)
    return { refusal: refusal('pool_not_ready', 'the server sent no job'), retryAfterMillis: notReadyMillis };
  if (jobAt !== undefined && now - jobAt >= jobMillis)
    return {
      refusal: refusal('pool_stale', `the server sent no new job for ${jobMillis / 1_000} s`),
      retryAfterMillis: 0,
    };
  if (heartbeat.isOverdue(now))
    return {
      refusal: refusal('pool_silent', `the server did not answer for ${pongMillis / 1_000} s`),
      retryAfterMillis: 0,
    };
  return undefined;
}

const AT_ODDS: readonly string[] = ['pool_network', 'pool_banned', 'pool_refused_login', 'pool_flood', 'pool_rejects'];

const WORTHLESS: readonly string[] = ['pool_flood', 'pool_rejects', 'pool_stale'];

/** What only another process than the one that gave the jobs says, or nobody. */
const RESTARTED: readonly string[] = ['pool_down', 'pool_closed', 'pool_not_ready'];

const isBadJob = ({ code }: Refusal): boolean => code.startsWith('job_');

/** The pool misbehaved or refused us, it is not merely unavailable: the current job is dropped. */
export const isDistrust = (why: Refusal): boolean => isBadJob(why) || AT_ODDS.includes(why.code);

/** Its jobs would not be paid: another working pool is preferred for a while. */
export const isWorthless = (why: Refusal): boolean => isBadJob(why) || WORTHLESS.includes(why.code);

/** A login that ended this way found nobody who knows the jobs of the connection before: they are dead. */
export const isRestart = (why: Refusal): boolean => RESTARTED.includes(why.code);
