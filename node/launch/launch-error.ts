/** Refusals of `svcd launch` and `svcd join`; the codes are listed in docs/errors.md. */
import { CodedError } from '../../protocol/coded-error.ts';

export const LAUNCH_ERROR_CODES = [
  'launch_file',
  'launch_altered',
  'launch_other',
  'launch_duplicate',
  'launch_terms',
  'launch_exists',
  'launch_missing',
  'launch_unreachable',
] as const;

export type LaunchErrorCode = (typeof LAUNCH_ERROR_CODES)[number];

export class LaunchError extends CodedError<LaunchErrorCode> {
  override readonly name = 'LaunchError';
}
