/**
 * svc-mining-v1, from miner to server (docs/protocol/stratum.md, S20 to S29): one JSON-RPC 2.0 request per line or text
 * frame. Decoding never throws: a malformed request becomes the error answer to send, with the right id.
 */
import { type Bytes, fromHex, fromUtf8, toHex, utf8 } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { answerTo, type RefusalCode } from './errors.ts';
import { Fields } from './fields.ts';
import { type Json, parseJson } from './json.ts';
import { MAX_LINE_BYTES } from './line.ts';
import {
  type Authorize,
  checkAuthorize,
  checkInteger,
  checkLength,
  checkSubscribe,
  type Submit,
  type Subscribe,
  U32_MAX,
} from './messages.ts';
import { NONCE_BYTES } from './nonce.ts';

/** An integer from 0 to 2^53 - 1, or text of at most 64 characters. */
export type RequestId = number | string;

const METHODS = [
  'mining.subscribe',
  'mining.authorize',
  'mining.submit',
  'mining.stats',
  'mining.ping',
  'mining.receipts',
] as const;
export type Method = (typeof METHODS)[number];

export type Call =
  | { method: 'mining.subscribe'; params: Subscribe }
  | { method: 'mining.authorize'; params: Authorize }
  | { method: 'mining.submit'; params: Submit }
  | { method: 'mining.stats' }
  | { method: 'mining.ping' }
  | { method: 'mining.receipts' };

export type Request = { kind: 'request'; id: RequestId } & Call;

/** What the server answers instead: an error with this code to this id (null when the request's could not be read). */
export interface Invalid {
  kind: 'invalid';
  code: RefusalCode;
  id: RequestId | null;
  reason: string;
}

export const ID_MAX_CHARACTERS = 64;

export function isRequestId(value: unknown): value is RequestId {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0;
  return typeof value === 'string' && value.length <= ID_MAX_CHARACTERS && value.isWellFormed();
}

/** The text of one line or text frame, bounded before anything reads it. */
export function messageText(message: Bytes | string): string {
  const length = message.length;
  if (
    length > MAX_LINE_BYTES ||
    (typeof message === 'string' && length * 3 > MAX_LINE_BYTES && utf8(message).length > MAX_LINE_BYTES)
  )
    throw new ProtocolError('too_long', `a message has at most ${MAX_LINE_BYTES} bytes`);
  if (typeof message !== 'string') return fromUtf8(message);
  if (!message.isWellFormed()) throw new ProtocolError('bad_utf8', 'half of a surrogate pair');
  return message;
}

export function jobIdText(jobId: number): string {
  return checkInteger('job_id', jobId, U32_MAX).toString(16).padStart(8, '0');
}

export const jobIdFromText = (text: string): number => {
  fromHex(text, 4);
  return Number.parseInt(text, 16);
};

function params(call: Call): Record<string, string> | undefined {
  switch (call.method) {
    case 'mining.subscribe': {
      const { agent, tag, session } = checkSubscribe(call.params);
      return { agent, ...(tag === '' ? {} : { tag }), ...(session === null ? {} : { session }) };
    }
    case 'mining.authorize': {
      const { username, password } = checkAuthorize(call.params);
      return { username, ...(password === '' ? {} : { password }) };
    }
    case 'mining.submit':
      return {
        job_id: jobIdText(call.params.jobId),
        nonce: toHex(checkLength('nonce', call.params.nonce, NONCE_BYTES)),
      };
    case 'mining.stats':
    case 'mining.ping':
    case 'mining.receipts':
      return undefined;
  }
}

/** The canonical spelling, without an LF. */
export function encodeRequest(id: RequestId, call: Call): string {
  if (!isRequestId(id)) throw new ProtocolError('out_of_range', 'not a request id');
  return JSON.stringify({ jsonrpc: '2.0', id, method: call.method, params: params(call) });
}

const isMethod = (text: string): text is Method => (METHODS as readonly string[]).includes(text);

function readCall(method: Method, value: Json | undefined): Call {
  const none = method === 'mining.stats' || method === 'mining.ping' || method === 'mining.receipts';
  const fields = new Fields(none && value === undefined ? new Map() : value, 'params');
  const call = readParams(method, fields);
  fields.end();
  return call;
}

function readParams(method: Method, fields: Fields): Call {
  switch (method) {
    case 'mining.subscribe':
      return {
        method,
        params: checkSubscribe({
          agent: fields.text('agent'),
          tag: fields.textOr('tag', ''),
          session: fields.textOr('session', null),
        }),
      };
    case 'mining.authorize':
      return {
        method,
        params: checkAuthorize({ username: fields.text('username'), password: fields.textOr('password', '') }),
      };
    case 'mining.submit':
      return { method, params: { jobId: jobIdFromText(fields.text('job_id')), nonce: readNonce(fields) } };
    case 'mining.stats':
    case 'mining.ping':
    case 'mining.receipts':
      return { method };
  }
}

/** A nonce that is text but not a nonce has a code of its own (26), apart from other bad parameters. */
class BadNonce extends ProtocolError {}

function readNonce(fields: Fields): Bytes {
  const text = fields.text('nonce');
  try {
    return fromHex(text, NONCE_BYTES);
  } catch (error) {
    throw new BadNonce('bad_hex', error instanceof Error ? error.message : 'bad nonce');
  }
}

const TOP_FIELDS = new Set(['jsonrpc', 'id', 'method', 'params']);

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

/**
 * The quick reader of `mining.submit` (docs/protocol/stratum.md, S26). Nearly every line a server gets is a submit in
 * its canonical spelling; that one is matched byte by byte, without text or a parser. Anything else is left to the general
 * reader, which gives the same value for it: a test keeps the two equal.
 */
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

export function decodeRequest(message: Bytes | string): Request | Invalid {
  if (typeof message !== 'string') {
    const quick = matchSubmit(message);
    if (quick !== null) return quick;
  }
  let document: Json;
  try {
    document = parseJson(messageText(message));
  } catch (error) {
    return refusal(-32700, null, error);
  }
  const invalid = (code: RefusalCode, reason: string): Invalid => ({ kind: 'invalid', code, id, reason });
  let id: RequestId | null = null;
  if (!(document instanceof Map)) return invalid(-32600, 'a request is an object');
  const given = document.get('id');
  if (!isRequestId(given)) return invalid(-32600, 'a request has an id: an integer or a short text');
  id = given;
  if (document.get('jsonrpc') !== '2.0') return invalid(-32600, 'jsonrpc must be "2.0"');
  for (const name of document.keys()) if (!TOP_FIELDS.has(name)) return invalid(-32600, 'unknown field in the request');
  const method = document.get('method');
  if (typeof method !== 'string') return invalid(-32600, 'method must be a string');
  if (!isMethod(method)) return invalid(-32601, 'no such method');
  try {
    return { kind: 'request', id, ...readCall(method, document.get('params')) };
  } catch (error) {
    return refusal(error instanceof BadNonce ? 26 : undefined, id, error);
  }
}

function refusal(code: RefusalCode | undefined, id: RequestId | null, error: unknown): Invalid {
  if (!(error instanceof ProtocolError)) throw error;
  return { kind: 'invalid', code: code ?? answerTo(error), id, reason: error.message };
}
