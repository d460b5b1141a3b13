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
import { checkAuthorize, checkInteger, checkLength, checkSubscribe, U32_MAX } from './messages.ts';
import { NONCE_BYTES } from './nonce.ts';
import { type Call, METHODS, type Method, type Request, type RequestId } from './v1-call.ts';
import { matchSubmit } from './v1-submit.ts';

export type { Call, Method, Request, RequestId } from './v1-call.ts';

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
