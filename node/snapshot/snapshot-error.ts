/** Why a snapshot cannot be made, or was refused. */
import { CodedError } from '../../protocol/coded-error.ts';

export const SNAPSHOT_ERROR_CODES = [
  'snapshot_config',
  'snapshot_not_here',
  'snapshot_unreadable',
  'snapshot_other_chain',
  'snapshot_other_cut',
  'snapshot_too_old',
  'snapshot_false',
] as const;

export class SnapshotError extends CodedError<(typeof SNAPSHOT_ERROR_CODES)[number]> {
  override readonly name = 'SnapshotError';
}

/** Reads or checks a part of a snapshot: every error becomes `snapshot_false`. */
export function checkPart<T>(part: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof SnapshotError) throw error;
    throw new SnapshotError('snapshot_false', `${part}: ${(error as Error).message}`);
  }
}

export const falsePart = (message: string): SnapshotError => new SnapshotError('snapshot_false', message);
