/** What the reason for a connection's end implies about the pool. */
import type { Refusal } from '../miner-error.ts';

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
