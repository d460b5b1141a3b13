/**
 * ML-DSA-65 (FIPS 204) by node:crypto, pure mode with an empty context (keys rules 7 and 8). OpenSSL draws fresh
 * randomness for every signature (hedged), so a fault or a side channel cannot be averaged over equal signatures.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { type Bytes, concat, fromHex } from '../../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';

/** PKCS#8 and SPKI wrappings of a bare ML-DSA-65 seed and public key: fixed prefixes, so no encoder is needed. */
const SEED_PREFIX = fromHex('3034020100300b060960864801650304031204228020');
const PUBLIC_PREFIX = fromHex('308207b2300b0609608648016503040312038207a100');

export type SigningKey = { readonly privateKey: KeyObject; readonly publicKey: Uint8Array<ArrayBuffer> };

export function signingKey(seed: Bytes): SigningKey {
  const der = concat(SEED_PREFIX, seed);
  const privateKey = createPrivateKey({ key: Buffer.from(der.buffer), format: 'der', type: 'pkcs8' });
  der.fill(0);
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: new Uint8Array(spki.subarray(spki.length - PUBLIC_KEY_BYTES)) };
}

/** Signs on the thread pool: a signature would block the event loop for two milliseconds. */
export const signMessage = (key: SigningKey, message: Bytes): Promise<Uint8Array<ArrayBuffer>> =>
  new Promise((resolve, reject) => {
    sign(null, message, key.privateKey, (error, signature) => {
      if (error) reject(error);
      else resolve(new Uint8Array(signature));
    });
  });

/** Undefined when key or signature have an invalid length. */
function readKey(publicKey: Bytes, signature: Bytes): KeyObject | undefined {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return undefined;
  const der = concat(PUBLIC_PREFIX, publicKey);
  return createPublicKey({ key: Buffer.from(der.buffer), format: 'der', type: 'spki' });
}

export function verifySignature(publicKey: Bytes, message: Bytes, signature: Bytes): boolean {
  const key = readKey(publicKey, signature);
  return key !== undefined && verify(null, message, key, signature);
}

/** The same on the thread pool. */
export const checkSignature = (publicKey: Bytes, message: Bytes, signature: Bytes): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const key = readKey(publicKey, signature);
    if (key === undefined) resolve(false);
    else
      verify(null, message, key, signature, (error, valid) => {
        if (error) reject(error);
        else resolve(valid);
      });
  });
