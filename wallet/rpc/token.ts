/**
 * The bearer token (specification: Authentication, rule 2): written on the first start, readable by its owner alone, and
 * compared in constant time. It allows every call, payments included.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, readPrivateFile } from '../keys/private-file.ts';
import { WalletError } from '../wallet-error.ts';

const TOKEN = /^[\x21-\x7e]{32,512}$/;

export function readToken(path: string): string | undefined {
  const text = readPrivateFile(path, 'token_readable_by_others');
  if (text === undefined) return undefined;
  const token = text.trim();
  if (!TOKEN.test(token))
    throw new WalletError('token_damaged', `${path} holds no token of 32 to 512 characters: delete it for a new one`, {
      path,
    });
  return token;
}

export async function readOrCreateToken(path: string): Promise<string> {
  const token = readToken(path);
  if (token !== undefined) return token;
  const fresh = randomBytes(32).toString('hex');
  await writeDurably(path, `${fresh}\n`, PRIVATE_MODE);
  return fresh;
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Checks an Authorization header. Digests are compared, so that neither content nor length shows in the time it takes. */
export function bearerCheck(token: string): (header: string | undefined) => boolean {
  const expected = digest(`Bearer ${token}`);
  return (header) => timingSafeEqual(digest(header ?? ''), expected);
}
