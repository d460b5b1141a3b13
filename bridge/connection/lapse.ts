/** Whether a connection has used up its time: to log in, to read, to send anything, or to close after the goodbye. */
import type { StratumLimits } from '../options.ts';
import type { Conversation } from './conversation.ts';

/** A peer that does not close after the goodbye is cut off. */
const GOODBYE_MILLIS = 3_000;
/** One that there is no work for logs in again, and is told why: the session at another server that its jobs came from may be over. */
const JOBLESS_MILLIS = 60_000;

export type Lapse =
  | { readonly kind: 'none' }
  /** The socket is destroyed: the peer reads nothing. */
  | { readonly kind: 'cut off'; readonly reason: string }
  | { readonly kind: 'end'; readonly reason: string; readonly isLoginTimeout: boolean };

const NONE: Lapse = { kind: 'none' };

export function lapseOf(conversation: Conversation, nowMillis: number, limits: StratumLimits): Lapse {
  const { session, peer, stalledSinceMillis, joblessSinceMillis } = conversation;
  const stalled = stalledSinceMillis > 0 ? nowMillis - stalledSinceMillis : 0;
  if (conversation.isEnding)
    return stalled > GOODBYE_MILLIS || stalled < 0 ? { kind: 'cut off', reason: 'did not close' } : NONE;
  if (peer.queued > limits.queueBytes || stalled > limits.stallMillis)
    return { kind: 'cut off', reason: 'does not read' };
  if (session.mining === null)
    return nowMillis - conversation.sinceMillis > limits.loginMillis
      ? { kind: 'end', reason: 'did not log in', isLoginTimeout: true }
      : NONE;
  if (nowMillis - session.lastActiveMillis > limits.idleMillis)
    return { kind: 'end', reason: 'silent for too long', isLoginTimeout: false };
  if (joblessSinceMillis > 0 && nowMillis - joblessSinceMillis > JOBLESS_MILLIS)
    return { kind: 'end', reason: 'no work for it', isLoginTimeout: false };
  return NONE;
}
