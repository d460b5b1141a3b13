/**
 * Files that hold a secret: tokens, private keys, passwords. Only their owner may read them; one that others can read
 * is refused, because the secret may already be known. The one exception is a credential that systemd passed to this
 * service: it is in a directory that only the service can enter, and access lists make its mode look wider than it is.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { RuntimeError } from '../runtime-error.ts';
import { readSmall } from './small-file.ts';

export const PRIVATE_MODE = 0o600;
const OTHERS = 0o077;
/** No secret is larger; an endless file must not be read for ever. */
const MAX_BYTES = 1 << 20;

export type PrivateFile =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'missing' }
  /** `reason` names the file and the remedy. */
  | { readonly kind: 'exposed' | 'unreadable'; readonly reason: string };

/** Never throws. The checks use the opened file: it cannot be replaced in between. */
export function readPrivateFile(path: string): PrivateFile {
  let file: number;
  try {
    // Non-blocking: a pipe in its place would block the program.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { kind: 'missing' };
    const reason = code === 'EACCES' ? `this user may not read ${path}` : message;
    return { kind: 'unreadable', reason };
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return { kind: 'unreadable', reason: `${path} is not a plain file` };
    if (stat.size > MAX_BYTES) return { kind: 'unreadable', reason: `${path} is larger than any secret` };
    if ((stat.mode & OTHERS) !== 0 && !isCredential(path))
      return { kind: 'exposed', reason: `${path} can be read or written by other users: run chmod 600 ${path}` };
    return { kind: 'text', text: readFileSync(file, 'utf8') };
  } catch (error) {
    return { kind: 'unreadable', reason: `${path}: ${(error as Error).message}` };
  } finally {
    closeSync(file);
  }
}

function isCredential(path: string): boolean {
  const { CREDENTIALS_DIRECTORY: directory = '' } = process.env;
  return directory.startsWith('/') && dirname(realpathSync(path)) === realpathSync(directory);
}

/** The text of a file that must be there; throws a RuntimeError that says what to do. */
export function privateText(path: string, option: string): string {
  const file = readPrivateFile(path);
  if (file.kind === 'text') return file.text;
  if (file.kind === 'exposed') throw new RuntimeError('secret_file_exposed', file.reason);
  const reason = file.kind === 'missing' ? `there is no file ${path}` : file.reason;
  throw new RuntimeError('secret_file_unreadable', `${option}: ${reason}`);
}

const PASSWORD_IN_URL = /:\/\/[^:@/"\s]*:[^@/"\s]+@|[?&]password=/;

/**
 * A config file. One that holds a password, in the URL of a database, may be read by its owner and group (root and the program's
 * user, as in /etc), not by everybody.
 */
export function readConfigText(path: string): string {
  const { text, mode } = readSmall(path);
  if (PASSWORD_IN_URL.test(text) && (mode & 0o006) !== 0)
    throw new Error(`it holds a password and every user can read it: run chmod 640 ${path}`);
  return text;
}
