/**
 * The quick reader of `mining.submit` (docs/protocol/stratum.md, S26). Nearly every line a server gets is a submit in
 * its canonical spelling; that one is matched byte by byte, without text or a parser. Anything else is left to the general
 * reader, which gives the same value for it: a test keeps the two equal.
 */
import type { Bytes } from '../bytes.ts';
import { utf8 } from '../bytes.ts';
import type { Request } from './v1-call.ts';

const HEAD = utf8('{"jsonrpc":"2.0","id":');
const MIDDLE = utf8(',"method":"mining.submit","params":{"job_id":"');
const NONCE = utf8('","nonce":"');
const TAIL = utf8('"}}');
const FIXED_BYTES = HEAD.length + MIDDLE.length + 8 + NONCE.length + 16 + TAIL.length;
/** 15 digits are always a safe integer. */
const MAX_ID_DIGITS = 15;

/** Values of the characters 0-9 and a-f; 255 for all others. */
const NIBBLES = new Uint8Array(256).fill(255);
for (let i = 0; i < 16; i++) NIBBLES['0123456789abcdef'.charCodeAt(i)] = i;

function startsAt(bytes: Bytes, at: number, expected: Bytes): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false;
  return true;
}

export function matchSubmit(line: Bytes): Request | null {
  const digits = line.length - FIXED_BYTES;
  if (digits < 1 || digits > MAX_ID_DIGITS || !startsAt(line, 0, HEAD)) return null;
  let at = HEAD.length;
  if (line[at] === 0x30 && digits > 1) return null;
  let id = 0;
  for (let i = 0; i < digits; i++) {
    const digit = (line[at++] as number) - 0x30;
    if (digit < 0 || digit > 9) return null;
    id = id * 10 + digit;
  }
  if (!startsAt(line, at, MIDDLE)) return null;
  at += MIDDLE.length;
  let jobId = 0;
  for (let i = 0; i < 8; i++) {
    const nibble = NIBBLES[line[at++] as number] as number;
    if (nibble > 15) return null;
    jobId = jobId * 16 + nibble;
  }
  if (!startsAt(line, at, NONCE)) return null;
  at += NONCE.length;
  const nonce = new Uint8Array(8);
  for (let i = 0; i < 8; i++) {
    const high = NIBBLES[line[at++] as number] as number;
    const low = NIBBLES[line[at++] as number] as number;
    if ((high | low) > 15) return null;
    nonce[i] = high * 16 + low;
  }
  if (!startsAt(line, at, TAIL)) return null;
  return { kind: 'request', id, method: 'mining.submit', params: { jobId, nonce } };
}
