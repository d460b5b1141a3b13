/**
 * Where the password comes from: `--password-file`, else `<wallet file>.password` when it exists, else the terminal. The
 * change of a password writes the new password file beside the old one first, so that a crash in between loses neither.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { NetworkName } from '../../protocol/network.ts';
import { syncDirectory, writeDurably } from '../../runtime/files/durable-file.ts';
import { WalletError } from '../wallet-error.ts';
import { PRIVATE_MODE, readPrivateFile } from './private-file.ts';
import { openWalletFile, readWalletFile, sealWalletFile, type WalletSecrets, writeWalletFile } from './wallet-file.ts';

export type Unlocked = { readonly secrets: WalletSecrets; readonly network: NetworkName };

export const passwordPath = (file: string, given: string | undefined): string => given ?? `${file}.password`;

/** 32 characters of base64url: 192 bits. */
export const randomPassword = (): string => randomBytes(24).toString('base64url');

/** A trailing newline comes from an editor and is not part of the password. */
export const readPassword = (path: string): string | undefined =>
  readPrivateFile(path, 'file_readable_by_others')?.replace(/\r?\n$/, '');

export async function unlock(
  file: string,
  passwordFile: string | undefined,
  ask: (() => Promise<string>) | undefined,
): Promise<Unlocked> {
  const text = readWalletFile(file);
  const path = passwordPath(file, passwordFile);
  const stored = readPassword(path);
  if (stored === undefined && passwordFile !== undefined)
    throw new WalletError('password_missing', `there is no password file ${path}`, { path });
  if (stored === undefined) {
    if (ask === undefined) throw new WalletError('password_missing', 'no password file and no terminal to ask at');
    return await openWalletFile(text, await ask());
  }
  try {
    return await openWalletFile(text, stored);
  } catch (error) {
    const next = `${path}.new`;
    if (!(error instanceof WalletError) || error.code !== 'file_password' || !existsSync(next)) throw error;
    // A password change was interrupted after the wallet was written: finish it.
    const unlocked = await openWalletFile(text, readPassword(next) ?? '');
    await rename(next, path);
    await syncDirectory(dirname(path));
    return unlocked;
  }
}

/** `stored`: the password file follows the change. */
export async function changePassword(
  file: string,
  unlocked: Unlocked,
  password: string,
  stored: string | undefined,
  log2N?: number,
): Promise<void> {
  const sealed = await sealWalletFile(unlocked.secrets, unlocked.network, password, log2N);
  if (stored !== undefined) await writeDurably(`${stored}.new`, `${password}\n`, PRIVATE_MODE);
  await writeWalletFile(file, sealed);
  if (stored !== undefined) {
    await rename(`${stored}.new`, stored);
    await syncDirectory(dirname(stored));
  } else await rm(`${passwordPath(file, undefined)}.new`, { force: true });
}
