/** Why a connection to a pool is of no more use, and after how long the pool is asked again. Pure. */
import { CODE, type ErrorReply } from '../../protocol/stratum/errors.ts';
import { type Refusal, refusal } from '../miner-error.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { SessionTimes } from './session-events.ts';

export type Ending = { readonly refusal: Refusal; readonly retryAfterMillis: number };

/** A server that was refused, or that refused us, is asked again after so long: by then it may have been put right. */
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

/** The same login may be taken a little later. */
export const isForNow = ({ code }: ErrorReply): boolean =>
  code === CODE.not_ready || code === CODE.internal || code === CODE.too_many_requests;

export type Waits = {
  /** When the last job came. */
  readonly jobAt: number | undefined;
  readonly firstJobBy: number;
  readonly heartbeat: Pick<Heartbeat, 'isOverdue'>;
};

/** While mining: does the server answer, and does it follow the chain? */
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
