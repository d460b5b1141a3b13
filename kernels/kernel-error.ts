/** The typed error of this folder. The codes are listed in docs/errors.md. */

import { CodedError } from '../protocol/coded-error.ts';

export const KERNEL_ERROR_CODES = [
  'kernel_busy',
  'kernel_worker_failed',
  'kernel_epoch_not_ready',
  'kernel_epoch_not_allowed',
  'kernel_memory_insufficient',
  'kernel_module_missing',
  'kernel_superseded',
  'kernel_closed',
] as const;

export type KernelErrorCode = (typeof KERNEL_ERROR_CODES)[number];

export class KernelError extends CodedError<KernelErrorCode> {
  override readonly name = 'KernelError';
}
