/**
 * The nonce and the server's prefix (docs/protocol/stratum.md, S40): 8 bytes, the prefix in the last 1 to 4 of them, the
 * rest is the miner's to fill.
 */
import type { Bytes } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { HEADER_BYTES, NONCE_OFFSET } from '../ledger/header.ts';

export const NONCE_BYTES = HEADER_BYTES - NONCE_OFFSET;

export const PREFIX_MIN_BYTES = 1;
export const PREFIX_MAX_BYTES = 4;

export function checkPrefix(prefix: Bytes): Bytes {
  if (prefix.length < PREFIX_MIN_BYTES || prefix.length > PREFIX_MAX_BYTES)
    throw new ProtocolError('out_of_range', 'a nonce prefix has 1 to 4 bytes');
  return prefix;
}

export function hasPrefix(nonce: Bytes, prefix: Bytes): boolean {
  if (nonce.length !== NONCE_BYTES) return false;
  const from = NONCE_BYTES - prefix.length;
  for (let i = 0; i < prefix.length; i++) if (nonce[from + i] !== prefix[i]) return false;
  return true;
}

/** How many nonces one job has for a miner with this prefix. */
export const nonceCount = (prefix: Bytes): bigint => 1n << BigInt(8 * (NONCE_BYTES - prefix.length));

/** The nonce number `counter` of those a miner with this prefix may try: counter little-endian, then the prefix. */
export function composeNonce(counter: bigint, prefix: Bytes): Uint8Array<ArrayBuffer> {
  checkPrefix(prefix);
  if (counter < 0n || counter >= nonceCount(prefix))
    throw new ProtocolError('out_of_range', 'nonce counter out of range');
  const nonce = new Uint8Array(NONCE_BYTES);
  new DataView(nonce.buffer).setBigUint64(0, counter, true);
  nonce.set(prefix, NONCE_BYTES - prefix.length);
  return nonce;
}
