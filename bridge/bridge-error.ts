/**
 * An error that prevents a stratum server from starting and is not a bug in it (configuration, ports, files). The codes
 * are listed in docs/errors.md.
 */
import { CodedError } from '../protocol/coded-error.ts';

export const BRIDGE_ERROR_CODES = ['certificate_unusable', 'options_disagree'] as const;
export type BridgeErrorCode = (typeof BRIDGE_ERROR_CODES)[number];

export class BridgeError extends CodedError<BridgeErrorCode> {
  override readonly name = 'BridgeError';
}
