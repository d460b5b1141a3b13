/**
 * svc-mining-v1, from server to miner (docs/protocol/stratum.md, S20 to S32): results, errors and notifications. The
 * decoder is the miner's; a result can only be read knowing the method that was called, so the caller is asked for it.
 */

import { ADDRESS_PAYLOAD_BYTES } from '../address.ts';
import type { Receipt } from '../books/receipt.ts';
import { type Bytes, bigintFromBytesBE, bigintToBytesBE, equalBytes, toHex } from '../bytes.ts';
import { ID_BYTES } from '../crypto/identifier.ts';
import { datasetSeed } from '../crypto/pow.ts';
import { ProtocolError } from '../errors.ts';
import { HEADER_BYTES, registrationWindowEnd } from '../ledger/header.ts';
import { CODE, type ErrorReply, isStratumCode } from './errors.ts';
import { Fields } from './fields.ts';
import { type Json, parseJson } from './json.ts';
import {
  type Accepted,
  type Authorized,
  checkAuthorized,
  checkInteger,
  checkJob,
  checkLength,
  checkReconnect,
  checkSubscribed,
  checkText,
  checkWork,
  type Job,
  PROTOCOL_V1,
  REJECT_REASONS,
  type Reconnect,
  type RejectReason,
  type Subscribed,
  U32_MAX,
  type WorkerStats,
} from './messages.ts';
import { offerBody, type ReceiptsOffer, readOfferFields, readReceiptFields, receiptBody } from './receipt-messages.ts';
import { isRequestId, jobIdFromText, jobIdText, type Method, messageText, type RequestId } from './v1-request.ts';

export type Result =
  | { method: 'mining.subscribe'; result: Subscribed }
  | { method: 'mining.authorize'; result: Authorized }
  | { method: 'mining.submit'; result: Accepted }
  | { method: 'mining.stats'; result: WorkerStats }
  | { method: 'mining.ping' }
  | { method: 'mining.receipts'; result: ReceiptsOffer };

export type Notification =
  | { method: 'mining.notify'; params: Job }
  | { method: 'mining.reconnect'; params: Reconnect }
  | { method: 'mining.receipt'; params: Receipt };

export type ServerMessage =
  | ({ kind: 'result'; id: RequestId } & Result)
  | { kind: 'error'; id: RequestId | null; error: ErrorReply }
  | ({ kind: 'notification' } & Notification);

const seeds = new Map<string, string>();

/** The dataset seed as text. A seed is one hash; a server sends the same one with every job of a month. */
export function seedText(network: number, epoch: number): string {
  const key = `${network}/${epoch}`;
  let text = seeds.get(key);
  if (text === undefined) {
    if (seeds.size >= 8) seeds.clear();
    text = toHex(datasetSeed(network, epoch));
    seeds.set(key, text);
  }
  return text;
}

export const targetText = (target: bigint): string => target.toString(16).padStart(64, '0');

function resultBody(answer: Result): Record<string, unknown> {
  switch (answer.method) {
    case 'mining.subscribe': {
      const { session, noncePrefix, network, server, pool } = checkSubscribed(answer.result);
      const base = { protocol: PROTOCOL_V1, session, nonce_prefix: toHex(noncePrefix), network, server };
      return pool === null ? base : { ...base, pool_address: pool.address, pool_name: pool.name };
    }
    case 'mining.authorize': {
      const { address, worker } = checkAuthorized(answer.result);
      return { address, worker };
    }
    case 'mining.submit': {
      const { work, blockId } = answer.result;
      const base = { status: 'accepted', work: checkWork('work', work).toString() };
      return blockId === null ? base : { ...base, block_id: toHex(checkLength('block_id', blockId, ID_BYTES)) };
    }
    case 'mining.stats':
      return statsBody(answer.result);
    case 'mining.ping':
      return {};
    case 'mining.receipts':
      return offerBody(answer.result);
  }
}

function statsBody(stats: WorkerStats): Record<string, unknown> {
  const rejected: Partial<Record<RejectReason, number>> = {};
  for (const reason of REJECT_REASONS) {
    const value = stats.rejected[reason];
    if (value !== undefined) rejected[reason] = checkInteger(reason, value, Number.MAX_SAFE_INTEGER);
  }
  const base = {
    accepted: checkInteger('accepted', stats.accepted, Number.MAX_SAFE_INTEGER),
    rejected,
    stale: checkInteger('stale', stats.stale, Number.MAX_SAFE_INTEGER),
    work: checkWork('work', stats.work).toString(),
    hash_rate: checkWork('hash_rate', stats.hashRate).toString(),
    share_work: checkWork('share_work', stats.shareWork).toString(),
  };
  if (stats.pool === null) return base;
  return {
    ...base,
    pending_atoms: checkWork('pending_atoms', stats.pool.pendingAtoms).toString(),
    paid_atoms: checkWork('paid_atoms', stats.pool.paidAtoms).toString(),
  };
}

/** The canonical spelling, without an LF; likewise below. */
export function encodeResult(id: RequestId, answer: Result): string {
  if (!isRequestId(id)) throw new ProtocolError('out_of_range', 'not a request id');
  return JSON.stringify({ jsonrpc: '2.0', id, result: resultBody(answer) });
}

const idText = (id: RequestId): string => (typeof id === 'number' ? String(id) : JSON.stringify(id));

/** The most frequent answers, written directly, for values that were checked before. Equal to encodeResult; a test keeps it so. */
export const encodeAccepted = (id: RequestId, work: bigint): string =>
  `{"jsonrpc":"2.0","id":${idText(id)},"result":{"status":"accepted","work":"${work}"}}`;

/** Address and worker have no character that JSON would escape. */
export const encodeAuthorized = (id: RequestId, { address, worker }: Authorized): string =>
  `{"jsonrpc":"2.0","id":${idText(id)},"result":{"address":"${address}","worker":"${worker}"}}`;

export function encodeSubscribed(id: RequestId, { session, noncePrefix, network, server, pool }: Subscribed): string {
  const prefix = toHex(noncePrefix);
  const payee = pool === null ? '' : `,"pool_address":"${pool.address}","pool_name":${JSON.stringify(pool.name)}`;
  return `{"jsonrpc":"2.0","id":${idText(id)},"result":{"protocol":"${PROTOCOL_V1}","session":"${session}","nonce_prefix":"${prefix}","network":${network},"server":${JSON.stringify(server)}${payee}}}`;
}

export function encodeError(id: RequestId | null, error: ErrorReply): string {
  if (id !== null && !isRequestId(id)) throw new ProtocolError('out_of_range', 'not a request id');
  const base = { code: error.code, message: checkText('message', error.message) };
  if ((error.code === CODE.banned) !== (error.retryAfterMillis !== null))
    throw new ProtocolError('out_of_range', 'retry_after_millis comes with code 28 and only with it');
  const body =
    error.retryAfterMillis === null
      ? base
      : { ...base, data: { retry_after_millis: checkInteger('retry_after_millis', error.retryAfterMillis, U32_MAX) } };
  return JSON.stringify({ jsonrpc: '2.0', id, error: body });
}

function jobBody(job: Job): Record<string, unknown> {
  const header = checkJob(job);
  return {
    job_id: jobIdText(job.jobId),
    header: toHex(job.header),
    target: targetText(header.target),
    share_target: targetText(job.shareTarget),
    anchor_height: header.anchorHeight,
    registration_window_end: registrationWindowEnd(header.anchorHeight),
    pow: { epoch: job.epoch, seed: seedText(header.networkId, job.epoch) },
    payout: toHex(job.payout),
    extranonce: toHex(job.extranonce),
    clean: job.clean,
  };
}

function reconnectBody(value: Reconnect): Record<string, unknown> {
  const { host, port, waitMillis } = checkReconnect(value);
  return { ...(host === '' ? {} : { host }), ...(port === 0 ? {} : { port }), wait_millis: waitMillis };
}

function newsBody(news: Notification): Record<string, unknown> {
  if (news.method === 'mining.notify') return jobBody(news.params);
  return news.method === 'mining.reconnect' ? reconnectBody(news.params) : receiptBody(news.params);
}

export const encodeNotification = (news: Notification): string =>
  JSON.stringify({ jsonrpc: '2.0', method: news.method, params: newsBody(news) });

function disagree(field: string): never {
  throw new ProtocolError('not_canonical', `${field} is not what the header says`);
}

function readJob(fields: Fields): Job {
  const pow = fields.fields('pow');
  const job: Job = {
    jobId: jobIdFromText(fields.text('job_id')),
    header: fields.hex('header', HEADER_BYTES),
    shareTarget: bigintFromBytesBE(fields.hex('share_target', 32)),
    epoch: pow.integer('epoch', U32_MAX),
    payout: fields.hex('payout', ADDRESS_PAYLOAD_BYTES),
    extranonce: fields.hex('extranonce'),
    clean: fields.boolean('clean'),
  };
  const seed = pow.text('seed');
  pow.end();
  const header = checkJob(job);
  if (!equalBytes(fields.hex('target', 32), bigintToBytesBE(header.target, 32))) disagree('target');
  if (fields.integer('anchor_height') !== header.anchorHeight) disagree('anchor_height');
  if (fields.integer('registration_window_end') !== registrationWindowEnd(header.anchorHeight))
    disagree('registration_window_end');
  if (seed !== seedText(header.networkId, job.epoch)) disagree('pow.seed');
  return job;
}

function readReconnect(fields: Fields): Reconnect {
  return checkReconnect({
    host: fields.textOr('host', ''),
    port: fields.has('port') ? fields.integer('port', 0xffff) : 0,
    waitMillis: fields.integer('wait_millis', U32_MAX),
  });
}

function readNotification(method: string, fields: Fields): Notification {
  if (method === 'mining.notify') return { method, params: readJob(fields) };
  if (method === 'mining.reconnect') return { method, params: readReconnect(fields) };
  if (method === 'mining.receipt') return { method, params: readReceiptFields(fields) };
  throw new ProtocolError('unsupported_kind', 'no such notification');
}

function readSubscribed(fields: Fields): Subscribed {
  if (fields.text('protocol') !== PROTOCOL_V1)
    throw new ProtocolError('unsupported_version', `the server does not speak ${PROTOCOL_V1}`);
  const pool = fields.has('pool_address') || fields.has('pool_name');
  return checkSubscribed({
    session: fields.text('session'),
    noncePrefix: fields.hex('nonce_prefix'),
    network: fields.integer('network', U32_MAX),
    server: fields.text('server'),
    pool: pool ? { address: fields.text('pool_address'), name: fields.text('pool_name') } : null,
  });
}

function readAccepted(fields: Fields): Accepted {
  if (fields.text('status') !== 'accepted') throw new ProtocolError('field_type', 'status must be "accepted"');
  return {
    work: fields.decimal('work'),
    blockId: fields.has('block_id') ? fields.hex('block_id', ID_BYTES) : null,
  };
}

function readStats(fields: Fields): WorkerStats {
  const counts = fields.fields('rejected');
  const rejected: Partial<Record<RejectReason, number>> = {};
  for (const reason of REJECT_REASONS) if (counts.has(reason)) rejected[reason] = counts.integer(reason);
  counts.end();
  const pool = fields.has('pending_atoms') || fields.has('paid_atoms');
  return {
    accepted: fields.integer('accepted'),
    rejected,
    stale: fields.integer('stale'),
    work: fields.decimal('work'),
    hashRate: fields.decimal('hash_rate'),
    shareWork: fields.decimal('share_work'),
    pool: pool ? { pendingAtoms: fields.decimal('pending_atoms'), paidAtoms: fields.decimal('paid_atoms') } : null,
  };
}

function readResult(method: Method, fields: Fields): Result {
  switch (method) {
    case 'mining.subscribe':
      return { method, result: readSubscribed(fields) };
    case 'mining.authorize':
      return { method, result: checkAuthorized({ address: fields.text('address'), worker: fields.text('worker') }) };
    case 'mining.submit':
      return { method, result: readAccepted(fields) };
    case 'mining.stats':
      return { method, result: readStats(fields) };
    case 'mining.ping':
      return { method };
    case 'mining.receipts':
      return { method, result: readOfferFields(fields) };
  }
}

function readError(fields: Fields): ErrorReply {
  const code = fields.value('code');
  if (typeof code !== 'number' || !isStratumCode(code)) throw new ProtocolError('out_of_range', 'unknown error code');
  const message = checkText('message', fields.text('message'));
  if (code !== 28) return { code, message, retryAfterMillis: null };
  const data = fields.fields('data');
  const retryAfterMillis = data.integer('retry_after_millis', U32_MAX);
  data.end();
  return { code, message, retryAfterMillis };
}

function readReply(top: Fields, methodOf: (id: RequestId) => Method | undefined): ServerMessage {
  const id: Json = top.value('id');
  if (top.has('error')) {
    if (id !== null && !isRequestId(id)) throw new ProtocolError('field_type', 'id must be a request id or null');
    const fields = top.fields('error');
    const error = readError(fields);
    fields.end();
    return { kind: 'error', id, error };
  }
  if (!isRequestId(id)) throw new ProtocolError('field_type', 'id must be a request id');
  const method = methodOf(id);
  if (method === undefined) throw new ProtocolError('reply_unexpected', 'a result for a request that was not made');
  const fields = top.fields('result');
  const result = readResult(method, fields);
  fields.end();
  return { kind: 'result', id, ...result };
}

/** `methodOf` names the method of a request that is still unanswered. Throws ProtocolError. */
export function decodeServerMessage(
  message: Bytes | string,
  methodOf: (id: RequestId) => Method | undefined,
): ServerMessage {
  const top = new Fields(parseJson(messageText(message)), 'a message');
  if (top.text('jsonrpc') !== '2.0') throw new ProtocolError('unsupported_version', 'jsonrpc must be "2.0"');
  let decoded: ServerMessage;
  if (top.has('method')) {
    const method = top.text('method');
    const fields = top.fields('params');
    decoded = { kind: 'notification', ...readNotification(method, fields) };
    fields.end();
  } else {
    decoded = readReply(top, methodOf);
  }
  top.end();
  return decoded;
}
