/**
 * ML-DSA-65 through node:crypto. The protocol uses raw keys; node:crypto needs them in DER, which is a constant prefix.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { Bytes } from '../protocol/bytes.ts';
import { PUBLIC_PREFIX } from '../runtime/native/ml-dsa.ts';

export { importPublicKey, UncheckedSignatureError, verifyMessage } from '../runtime/native/ml-dsa.ts';

/** A private key in its short form, the 32-byte seed. */
const SEED_PREFIX = Buffer.from('3034020100300b060960864801650304031204228020', 'hex');

export const privateKeyOfSeed = (seed: Bytes): KeyObject =>
  createPrivateKey({ key: Buffer.concat([SEED_PREFIX, seed]), format: 'der', type: 'pkcs8' });

export const rawPublicKey = (key: KeyObject): Uint8Array<ArrayBuffer> =>
  new Uint8Array(createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(PUBLIC_PREFIX.length));

export const signMessage = (key: KeyObject, message: Bytes): Uint8Array<ArrayBuffer> =>
  new Uint8Array(sign(null, message, key));

/** Off the main thread. */
export const signMessageAside = (key: KeyObject, message: Bytes): Promise<Uint8Array<ArrayBuffer>> =>
  new Promise((resolve, reject) =>
    sign(null, message, key, (error, signature) => (error ? reject(error) : resolve(new Uint8Array(signature)))),
  );

/** Off the main thread. */
export const verifyMessageAside = (publicKey: KeyObject, message: Bytes, signature: Bytes): Promise<boolean> =>
  new Promise((resolve, reject) =>
    verify(null, message, publicKey, signature, (error, valid) => (error ? reject(error) : resolve(valid))),
  );
