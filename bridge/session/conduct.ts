/**
 * How a session behaves: the requests it may send, and the score of its faults. Only the sender's own mistakes are
 * faults: a login that can be read and is refused is none.
 */
import { CODE, type RefusalCode } from '../../protocol/stratum/errors.ts';
import { type Bucket, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import type { StratumLimits } from '../options.ts';
import { addPoints, FAULT_POINTS, type Fault, NO_POINTS, type Score } from './ban-score.ts';

/** The faults behind refusals. A refusal that is not here is not the miner's fault. */
export const FAULTS: Partial<Record<RefusalCode, Fault>> = {
  [CODE.parse_error]: 'malformed',
  [CODE.invalid_request]: 'malformed',
  [CODE.unknown_method]: 'malformed',
  [CODE.invalid_params]: 'malformed',
  [CODE.duplicate]: 'duplicate',
  [CODE.above_target]: 'above_target',
  [CODE.not_authorized]: 'unauthorized',
  [CODE.not_subscribed]: 'unauthorized',
  [CODE.bad_nonce]: 'bad_nonce',
};

export class Conduct {
  score: Score = NO_POINTS;
  /** 0 when it is not banned. */
  bannedUntilMillis = 0;
  #requests: Bucket | null = null;

  /** Requests are cheap but not free: each connection has a bucket of them; submits have their own once it mines. */
  takeRequest({ requests }: StratumLimits, nowMillis: number): boolean {
    const bucket = take(this.#requests ?? fullBucket(requests, nowMillis), requests, nowMillis);
    if (bucket !== undefined) this.#requests = bucket;
    return bucket !== undefined;
  }

  /** Returns whether the session is banned for it. */
  fault(fault: Fault, { bans }: StratumLimits, nowMillis: number): boolean {
    this.score = addPoints(this.score, FAULT_POINTS[fault], nowMillis, bans);
    if (this.score.points < bans.limit) return false;
    this.bannedUntilMillis = nowMillis + bans.banMillis;
    return true;
  }
}
