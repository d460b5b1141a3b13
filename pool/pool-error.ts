/** Errors that stop the pool or its books and are not bugs. The codes are listed in docs/errors.md. */

import { CodedError } from '../protocol/coded-error.ts';

export const POOL_ERROR_CODES = [
  'options_disagree',
  'nodes_differ',
  'directory_other_chain',
  'key_other_chain',
  'instances_need_redis',
  'database_unavailable',
  'wallet_unavailable',
  'pool_address',
  'webhook_secret',
  'downloads',
  'not_a_pool',
  'pool_running',
  'backup_unusable',
  'restore_interrupted',
  'pool_unreachable',
  'chain_changed',
  'chain_height',
  'terms_unreadable',
] as const;
export type PoolErrorCode = (typeof POOL_ERROR_CODES)[number];

export class PoolError extends CodedError<PoolErrorCode> {
  override readonly name = 'PoolError';
}
