/** The typed error of the miner. The codes stand in docs/errors.md. */

export const MINER_ERROR_CODES = ['vectors_unreadable', 'vectors_invalid', 'self_test_difference'] as const;

export type MinerErrorCode = (typeof MINER_ERROR_CODES)[number];

export class MinerError extends Error {
  readonly code: MinerErrorCode;

  constructor(code: MinerErrorCode, message: string) {
    super(message);
    this.name = 'MinerError';
    this.code = code;
  }
}
