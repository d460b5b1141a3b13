/**
 * XChaCha20-Poly1305 with the primitives of node:crypto: HChaCha20 is a block of ChaCha20 without the final addition,
 * so the subkey is a block minus the initial rows, and the rest is ChaCha20-Poly1305 (RFC 8439).
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { type Bytes, concat } from '../../protocol/bytes.ts';

const TAG_BYTES = 16;
// expand 32-byte k
const CONSTANTS = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574] as const;

function streamKey(key: Bytes, nonce: Bytes): Buffer {
  const block = createCipheriv('chacha20', key, nonce.subarray(0, 16)).update(Buffer.alloc(64));
  const from = Buffer.from(nonce);
  const found = Buffer.alloc(32);
  for (const [i, constant] of CONSTANTS.entries()) {
    found.writeUInt32LE((block.readUInt32LE(4 * i) - constant) >>> 0, 4 * i);
    found.writeUInt32LE((block.readUInt32LE(48 + 4 * i) - from.readUInt32LE(4 * i)) >>> 0, 16 + 4 * i);
  }
  block.fill(0);
  return found;
}

const shortNonce = (nonce: Bytes): Bytes => concat(new Uint8Array(4), nonce.subarray(16));

/** The ciphertext with its tag behind it. */
export function seal(key: Bytes, nonce: Bytes, about: Bytes, plain: Bytes): Uint8Array<ArrayBuffer> {
  const cipher = createCipheriv('chacha20-poly1305', streamKey(key, nonce), shortNonce(nonce), {
    authTagLength: TAG_BYTES,
  });
  cipher.setAAD(about, { plaintextLength: plain.length });
  return concat(cipher.update(plain), cipher.final(), cipher.getAuthTag());
}

/** Undefined if it was sealed with another key, nonce or associated data, or was modified. */
export function open(key: Bytes, nonce: Bytes, about: Bytes, sealed: Bytes): Uint8Array<ArrayBuffer> | undefined {
  const length = sealed.length - TAG_BYTES;
  if (length < 0) return undefined;
  const cipher = createDecipheriv('chacha20-poly1305', streamKey(key, nonce), shortNonce(nonce), {
    authTagLength: TAG_BYTES,
  });
  cipher.setAAD(about, { plaintextLength: length });
  cipher.setAuthTag(sealed.subarray(length));
  const plain = cipher.update(sealed.subarray(0, length));
  try {
    cipher.final();
  } catch {
    return undefined;
  }
  return new Uint8Array(plain);
}
