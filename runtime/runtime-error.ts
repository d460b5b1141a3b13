/**
 * Errors that prevent a program from starting or running and are not bugs: programs print it as one line and exit with
 * 1 (program.ts). The codes are listed in docs/errors.md.
 */
import { CodedError } from '../protocol/coded-error.ts';
import { type ListenAddress, showListenAddress } from './command-line/command-line.ts';

export const RUNTIME_ERROR_CODES = [
  'directory_locked',
  'directory_newer',
  'directory_unusable',
  'log_file_unwritable',
  'listen_failed',
  'secret_file_exposed',
  'secret_file_unreadable',
  'node_not_asked',
  'invariant_broken',
] as const;

export type RuntimeErrorCode = (typeof RUNTIME_ERROR_CODES)[number];

export class RuntimeError extends CodedError<RuntimeErrorCode> {
  override readonly name = 'RuntimeError';
}

/** The system's error about a directory that a program needs. */
export const directoryError = (directory: string, error: unknown): RuntimeError =>
  new RuntimeError('directory_unusable', `${directory} cannot be used as a directory: ${(error as Error).message}`);

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there already: stop it, or choose another port',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'this user may not listen on that port',
  ENOTFOUND: 'there is no machine of that name',
};

/** The error of a listener's `error` event, in words. */
export function listenError(what: string, address: ListenAddress, error: Error): RuntimeError {
  const reason = LISTEN_REASONS[(error as NodeJS.ErrnoException).code ?? ''] ?? error.message;
  return new RuntimeError('listen_failed', `cannot listen on ${showListenAddress(address)} for ${what}: ${reason}`);
}
