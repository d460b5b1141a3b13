/**
 * The one typed error of this folder. A decoder either returns a value that encodes back to the same bytes, or throws
 * a ProtocolError; nothing else. The codes are listed in docs/errors.md, and a test keeps the two lists equal.
 */

import { CodedError } from './coded-error.ts';

export const PROTOCOL_ERROR_CODES = [
  'truncated',
  'trailing_bytes',
  'out_of_range',
  'not_canonical',
  'bad_hex',
  'bad_utf8',
  'too_long',
  'unsupported_version',
  'unsupported_profile',
  'unsupported_kind',
  'wrong_chain',
  'wrong_network',
  'address_text',
  'address_checksum',
  'address_network',
  'address_kind',
  'address_length',
  'amount_text',
  'amount_range',
  'tag_characters',
  'duplicate_entry',
  'json_text',
  'json_depth',
  'field_missing',
  'field_unknown',
  'field_type',
  'reply_unexpected',
  'username_text',
  'password_text',
  'package_digest',
  'package_signature',
  'package_member',
  'package_other',
  'package_incomplete',
  'package_complete',
] as const;

export type ProtocolErrorCode = (typeof PROTOCOL_ERROR_CODES)[number];

export class ProtocolError extends CodedError<ProtocolErrorCode> {
  override readonly name = 'ProtocolError';
}

export type Result<T> = { ok: true; value: T } | { ok: false; error: ProtocolError };

/** Runs a decoder and turns its refusal into a value. Other exceptions are bugs and pass through. */
export function attempt<T>(decode: () => T): Result<T> {
  try {
    return { ok: true, value: decode() };
  } catch (error) {
    if (error instanceof ProtocolError) return { ok: false, error };
    throw error;
  }
}
