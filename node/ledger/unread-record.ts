/**
 * Errors of this node's own: what it could not read or check says nothing of a block or cut, whatever was being
 * executed. Nobody is blamed for it, nothing is left out, and no cut is judged by it.
 */
import { UncheckedSignatureError } from '../ml-dsa.ts';

/** The store did not answer. It may the next time. */
export class UnreadRecordError extends Error {}

/** What the store answered is not what was written: it is the same the next time. */
export class DamagedRecordError extends UnreadRecordError {}

export const isOwnError = (error: unknown): error is Error =>
  error instanceof UncheckedSignatureError || error instanceof UnreadRecordError;

/** May be over the next time, as a damaged record is not. */
export const isPassing = (error: unknown): boolean => isOwnError(error) && !(error instanceof DamagedRecordError);

/** A record that is not of a committed set, whose digests show what is damaged. */
export function decodeRecord<T>(bytes: Uint8Array | undefined, decode: (bytes: Uint8Array) => T): T | undefined {
  try {
    return bytes === undefined ? undefined : decode(bytes);
  } catch (cause) {
    throw new DamagedRecordError(`a record of the store is damaged: ${(cause as Error).message}`, { cause });
  }
}
