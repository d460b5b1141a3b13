/** What keeps a stratum server from starting, through no defect of its own. The codes are listed in docs/errors.md. */
import { CodedError } from '../protocol/coded-error.ts';

export const BRIDGE_ERROR_CODES = ['certificate_unusable', 'options_disagree'] as const;
export type BridgeErrorCode = (typeof BRIDGE_ERROR_CODES)[number];

export class BridgeError extends CodedError<BridgeErrorCode> {
  override readonly name = 'BridgeError';
}
