/**
 * The error table of the mining protocol (docs/protocol/stratum.md, S60): the numbers of v1, the bytes of v2, and the
 * effect of each on a connection. A server answers with these; a miner acts on them.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts';

export interface StratumError {
  /** The number in v1. */
  code: number;
  /** The byte in v2. */
  byte: number;
  name: string;
  meaning: string;
  connection: 'kept' | 'closed';
  /** 'excess': only for what this connection itself sent too much of, never for a server that is overloaded. */
  scored: 'yes' | 'no' | 'excess';
}

const row = <C extends number, N extends string>(
  code: C,
  byte: number,
  name: N,
  meaning: string,
  scored: StratumError['scored'],
  connection: StratumError['connection'] = 'kept',
) => ({ code, byte, name, meaning, connection, scored });

export const STRATUM_ERRORS = [
  row(-32700, 1, 'parse_error', 'not JSON', 'yes'),
  row(-32600, 2, 'invalid_request', 'not a request, or not one for this state of the session', 'yes'),
  row(-32601, 3, 'unknown_method', 'no such method', 'yes'),
  row(-32602, 4, 'invalid_params', 'bad parameters', 'yes'),
  row(20, 20, 'internal', 'internal error; the miner is not at fault', 'no'),
  row(21, 21, 'unknown_job', 'unknown or expired job', 'no'),
  row(22, 22, 'duplicate', 'this nonce was submitted before', 'yes'),
  row(23, 23, 'above_target', 'hash is above the share target', 'yes'),
  row(24, 24, 'not_authorized', 'not authorized', 'yes'),
  row(25, 25, 'not_subscribed', 'not subscribed', 'yes'),
  row(26, 26, 'bad_nonce', 'malformed nonce or wrong prefix', 'yes'),
  row(27, 27, 'too_many_requests', 'too many requests', 'excess'),
  row(28, 28, 'banned', 'banned', 'no', 'closed'),
  row(29, 29, 'bad_address', 'address is invalid, of another network or cannot be paid', 'no'),
  row(30, 30, 'bad_tag', 'tag is not allowed', 'no'),
  row(31, 31, 'not_ready', 'not ready: the node is not synced or there is no job yet', 'no'),
] as const satisfies readonly StratumError[];

type Errors = (typeof STRATUM_ERRORS)[number];
export type StratumCode = Errors['code'];
export type StratumErrorName = Errors['name'];

/** The codes by name: `CODE.unknown_job` is 21. */
export const CODE = Object.fromEntries(STRATUM_ERRORS.map(({ name, code }) => [name, code])) as {
  readonly [E in Errors as E['name']]: E['code'];
};

/** What a request can be answered with; 28 comes unasked, with the end of the connection. */
export type RefusalCode = Exclude<StratumCode, (typeof CODE)['banned']>;

type Row = StratumError & { code: StratumCode; name: StratumErrorName };

const byCode = new Map<number, Row>(STRATUM_ERRORS.map((error) => [error.code, error]));
const byByte = new Map<number, Row>(STRATUM_ERRORS.map((error) => [error.byte, error]));

export const isStratumCode = (code: number): code is StratumCode => byCode.has(code);

export const stratumError = (code: StratumCode): Row => byCode.get(code) as Row;

export function codeFromByte(byte: number): StratumCode {
  const found = byByte.get(byte);
  if (found === undefined) throw new ProtocolError('out_of_range', `${byte} is not an error code`);
  return found.code;
}

/** An error as it is sent. `retryAfterMillis` comes with code 28 and only with it. */
export interface ErrorReply {
  code: StratumCode;
  message: string;
  retryAfterMillis: number | null;
}

export const errorReply = (code: RefusalCode, message?: string): ErrorReply => ({
  code,
  message: message ?? stratumError(code).meaning,
  retryAfterMillis: null,
});

export const bannedReply = (retryAfterMillis: number): ErrorReply => ({
  code: CODE.banned,
  message: stratumError(CODE.banned).meaning,
  retryAfterMillis,
});

const ANSWERS: Partial<Record<ProtocolErrorCode, RefusalCode>> = {
  unsupported_kind: CODE.unknown_method,
  tag_characters: CODE.bad_tag,
  address_text: CODE.bad_address,
  address_checksum: CODE.bad_address,
  address_network: CODE.bad_address,
  address_kind: CODE.bad_address,
  address_length: CODE.bad_address,
};

/** Which code a server answers with when a decoder refused what a client sent. */
export const answerTo = (error: ProtocolError): RefusalCode => ANSWERS[error.code] ?? CODE.invalid_params;
