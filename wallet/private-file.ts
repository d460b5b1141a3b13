/**
 * Files that only their owner may read: the wallet, its password, its token. One that others can read is refused, because
 * whoever could have read it may have.
 */
import { lstatSync, readFileSync } from 'node:fs';
import { WalletError, type WalletErrorCode } from './wallet-error.ts';

export const PRIVATE_MODE = 0o600;

/** Undefined when there is no such file. */
export function readPrivateFile(path: string, refusal: WalletErrorCode): string | undefined {
  let stat: ReturnType<typeof lstatSync>;
  try {
    stat = lstatSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if (stat === undefined || !stat.isFile()) throw new WalletError(refusal, `${path} is not a plain file`, { path });
  if ((stat.mode & 0o077) !== 0)
    throw new WalletError(refusal, `${path} can be read by other users: run chmod 600 ${path}`, { path });
  return readFileSync(path, 'utf8');
}
