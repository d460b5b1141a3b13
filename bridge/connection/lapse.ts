/** Whether a connection has used up its time: to log in, to read, to send anything, or to close after the goodbye. */
import type { StratumLimits } from '../options.ts';
import type { Conversation } from './conversation.ts';

/** A peer that does not close after the goodbye is cut off. */
const GOODBYE_MILLIS = 3_000;
/** One that there is no work for logs in again, and is told why: the session at another server that its jobs came from may be over. */
const JOBLESS_MILLIS = 60_000;

/** A miner that logs in at once needs less; an address whose many connections find nothing gives one to an address that has few. */
const LOGIN_MILLIS = 5_000;
const FIRST_SHARE_MILLIS = 15_000;
const MANY = 4;
/** One that works has a share every ten seconds, unless it asked for a share work that is too large for it. */
const IDLE_MILLIS = 120_000;
const SLOW_MILLIS = 1_200_000;

/** Where all places are taken: whether it gives its own to another, whose address has so many; `ofAddress`: those of an address. */
export function givesWay(
  { session, client, isWorking, isExempt, isEnding, sinceMillis }: Conversation,
  others: number,
  ofAddress: (client: string) => number,
  nowMillis: number,
): boolean {
  if (isExempt || isEnding) return false;
  if (session.mining === null) return !session.isPutOff && nowMillis - sinceMillis > LOGIN_MILLIS;
  const idleMillis = nowMillis - session.mining.servedMillis;
  // A slow miner that has found something keeps its place for longer, but those of an address with many of them.
  const isSlow = session.tally.accepted > 0 && idleMillis < SLOW_MILLIS && ofAddress(client) <= others + 1;
  if (idleMillis > IDLE_MILLIS) return !isSlow;
  return !isWorking && idleMillis > FIRST_SHARE_MILLIS && ofAddress(client) > MANY * (others + 1);
}

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
