/** The typed error of this folder; its codes, causes and remedies are in docs/errors.md. Loads in browsers. */

import { CodedError } from '../../protocol/coded-error.ts';

export const GPU_ERROR_CODES = [
  'gpu_no_adapter',
  'gpu_module_missing',
  'gpu_limits',
  'gpu_memory',
  'gpu_device_lost',
  'gpu_hung',
  'gpu_compile',
  'gpu_wrong_dataset',
] as const;

export type GpuErrorCode = (typeof GPU_ERROR_CODES)[number];

export class GpuError extends CodedError<GpuErrorCode> {
  override readonly name = 'GpuError';
}
