/** The typed error of the miner. The codes are listed in docs/errors.md. */

import { CodedError } from '../protocol/coded-error.ts';

export const MINER_ERROR_CODES = [
  'vectors_unreadable',
  'vectors_invalid',
  'self_test_difference',
  'pool_url',
  'pool_unreachable',
  'pool_down',
  'pool_certificate',
  'pool_silent',
  'pool_garbage',
  'pool_flood',
  'pool_rejects',
  'pool_stale',
  'pool_closed',
  'pool_refused_login',
  'pool_banned',
  'pool_not_ready',
  'pool_network',
  'job_network',
  'job_target_zero',
  'job_share_target',
  'job_pays_other',
  'job_payout_unknown',
  'job_epoch',
  'job_generation',
  'reconnect_refused',
  'device_unknown',
  'device_none',
  'device_bad_hits',
  'device_silent',
  'device_lost',
] as const;

export type MinerErrorCode = (typeof MINER_ERROR_CODES)[number];

export class MinerError extends CodedError<MinerErrorCode> {
  override readonly name = 'MinerError';
}
/** A refusal as a value: what is wrong, in words for the user, under a code of the table. */
export type Refusal = { readonly code: MinerErrorCode; readonly message: string };

/** The message may contain text of a server; at most a line of it is kept. */
const LONGEST_MESSAGE = 300;

export const refusal = (code: MinerErrorCode, message: string): Refusal => ({
  code,
  message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}...` : message,
});
