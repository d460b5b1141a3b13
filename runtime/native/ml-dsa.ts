/**
 * Checks ML-DSA-65 signatures through node:crypto. Keys are raw in the protocol; node:crypto needs them in DER, which
 * is a constant prefix.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { Bytes } from '../../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/transactions/transaction.ts';
import { BoundedMap } from '../bounded-map.ts';

export const PUBLIC_PREFIX = Buffer.from('308207b2300b0609608648016503040312038207a100', 'hex');

export const importPublicKey = (raw: Bytes): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_PREFIX, raw]), format: 'der', type: 'spki' });

/** A cache: importing a key costs a third of a check, and payers pay repeatedly. About 10 MB. */
const imported = new BoundedMap<string, KeyObject>(1_024);

function importedKey(raw: Bytes): KeyObject {
  const name = Buffer.from(raw.buffer, raw.byteOffset, raw.length).toString('latin1');
  const known = imported.use(name);
  if (known !== undefined) return known;
  const key = importPublicKey(raw);
  imported.set(name, key);
  return key;
}

/** The check itself failed, for example for lack of memory: nothing is known of the signature. */
export class UncheckedSignatureError extends Error {}

/**
 * False is a fact of the three values, the same at every node and at any time. Any bytes of the right length are a key, and
 * no bytes of a signature make the check fail, so any exception says that it was not made: it must not be taken for false.
 */
export function verifyMessage(publicKey: Bytes, message: Bytes, signature: Bytes): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES) return false;
  try {
    return verify(null, message, importedKey(publicKey), signature);
  } catch (cause) {
    throw new UncheckedSignatureError(`a signature could not be checked: ${(cause as Error).message}`, { cause });
  }
}
