/**
 * The messages of the mining protocol as plain values, shared by both wire forms (docs/protocol/stratum.md, S20 to S32):
 * v1-request.ts and v1-answer.ts write them as JSON lines, v2.ts as binary frames. The limits of every field are defined here, once.
 */
import { ADDRESS_PAYLOAD_BYTES, parseAddress } from '../address.ts';
import { type Bytes, utf8 } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { decodeHeader, type Header } from '../ledger/header.ts';
import { checkTag, MAX_EXTRANONCE, MAX_TAG } from '../ledger/tag.ts';
import { MAX_TARGET } from '../ledger/target.ts';
import { networkById } from '../network.ts';
import { checkPrefix } from './nonce.ts';

export const PROTOCOL_V1 = 'svc-mining-v1';
export const PROTOCOL_V2 = 'svc-mining-v2';

export const SESSION_BYTES = 16;
export const AGENT_MAX = 64;
export const WORKER_MAX = 64;
export const POOL_NAME_MAX_BYTES = 64;
export const TEXT_MAX_BYTES = 255;
export const U32_MAX = 0xffffffff;
export const WORK_MAX = (1n << 128n) - 1n;
const HOST_MAX = 253;

/** `tag` is '' for none; `session` is the 32 hex characters of a session to resume, or null. */
export interface Subscribe {
  agent: string;
  tag: string;
  session: string | null;
}

/** `pool` is null on a bridge, where each miner is paid to its own address. */
export interface Subscribed {
  session: string;
  noncePrefix: Bytes;
  network: number;
  server: string;
  pool: { address: string; name: string } | null;
}

/** `password` is '' for none. username.ts reads both texts. */
export interface Authorize {
  username: string;
  password: string;
}

/** `worker` is '' for none. */
export interface Authorized {
  address: string;
  worker: string;
}

/** `nonce` is the 8 bytes as in the header. */
export interface Submit {
  jobId: number;
  nonce: Bytes;
}

export interface Accepted {
  work: bigint;
  blockId: Bytes | null;
}

/**
 * `header` is all 312 bytes with a zeroed nonce. What v1 repeats in fields of its own (block target, heights, dataset seed)
 * follows from header and epoch, so it is no part of the value: v1 writes it from them and refuses what disagrees.
 */
export interface Job {
  jobId: number;
  header: Bytes;
  shareTarget: bigint;
  epoch: number;
  payout: Bytes;
  extranonce: Bytes;
  clean: boolean;
}

/** '' and 0 mean: the host and port this connection was made to. */
export interface Reconnect {
  host: string;
  port: number;
  waitMillis: number;
}

/** The reasons a share can be refused for, in the order `mining.stats` lists them. Stale shares are counted apart. */
export const REJECT_REASONS = [
  'internal',
  'duplicate',
  'above_target',
  'not_authorized',
  'not_subscribed',
  'bad_nonce',
  'too_many_requests',
  'not_ready',
] as const;

export type RejectReason = (typeof REJECT_REASONS)[number];

/** `hashRate` is in hashes per second; `pool` is null on a bridge. */
export interface WorkerStats {
  accepted: number;
  rejected: Partial<Record<RejectReason, number>>;
  stale: number;
  work: bigint;
  hashRate: bigint;
  shareWork: bigint;
  pool: { pendingAtoms: bigint; paidAtoms: bigint } | null;
}

function refuse(field: string, want: string): never {
  throw new ProtocolError('out_of_range', `${field} must be ${want}`);
}

const PRINTABLE = /^[\x20-\x7e]*$/;
// Other, control: C0, DEL and C1. Text that reaches a log or a page must contain no terminal control sequences.
const CONTROL = /\p{Cc}/u;
const HOST = /^[A-Za-z0-9._:-]*$/;
const WORKER = /^[A-Za-z0-9_.-]*$/;
const SESSION = /^[0-9a-f]{32}$/;

/** Agents and server names: printable ASCII, so that 64 characters are 64 bytes in both forms. */
function checkAgent(field: string, text: string): void {
  if (text.length > AGENT_MAX || !PRINTABLE.test(text))
    refuse(field, `at most ${AGENT_MAX} printable ASCII characters`);
}

/** Other text: UTF-8 of bounded length without control characters. */
export function checkText(field: string, text: string, maxBytes = TEXT_MAX_BYTES): string {
  // Nearly all text is ASCII, which needs no encoding to be counted.
  if (text.length <= maxBytes && PRINTABLE.test(text)) return text;
  if (text.length > maxBytes || CONTROL.test(text) || !text.isWellFormed() || utf8(text).length > maxBytes)
    refuse(field, `UTF-8 text of at most ${maxBytes} bytes without control characters`);
  return text;
}

export function checkInteger(field: string, value: number, max: number): number {
  if (!Number.isInteger(value) || value < 0 || value > max) refuse(field, `an integer from 0 to ${max}`);
  return value;
}

export function checkWork(field: string, value: bigint): bigint {
  if (value < 0n || value > WORK_MAX) refuse(field, 'an integer of at most 128 bits');
  return value;
}

export function checkLength(field: string, bytes: Bytes, length: number): Bytes {
  if (bytes.length !== length) refuse(field, `${length} bytes`);
  return bytes;
}

function checkSession(session: string): void {
  if (!SESSION.test(session)) refuse('session', '32 lower-case hex characters');
}

export function checkWorker(worker: string): string {
  if (worker.length > WORKER_MAX || !WORKER.test(worker))
    throw new ProtocolError('username_text', `a worker name has at most ${WORKER_MAX} of letters, digits and _ - .`);
  return worker;
}

export function checkSubscribe(value: Subscribe): Subscribe {
  checkAgent('agent', value.agent);
  // One code for every tag that is not allowed: a server answers all of them with 30.
  if (value.tag.length > MAX_TAG) throw new ProtocolError('tag_characters', `a tag has at most ${MAX_TAG} characters`);
  checkTag(value.tag);
  if (value.session !== null) checkSession(value.session);
  return value;
}

export function checkSubscribed(value: Subscribed): Subscribed {
  checkSession(value.session);
  checkPrefix(value.noncePrefix);
  const network = networkById(value.network);
  checkAgent('server', value.server);
  if (value.pool !== null) {
    parseAddress(value.pool.address, network.name);
    checkText('pool_name', value.pool.name, POOL_NAME_MAX_BYTES);
  }
  return value;
}

export function checkAuthorize(value: Authorize): Authorize {
  checkText('username', value.username);
  checkText('password', value.password);
  return value;
}

export function checkAuthorized(value: Authorized): Authorized {
  parseAddress(value.address);
  checkWorker(value.worker);
  return value;
}

/** Throws for a malformed job; returns its decoded header. */
export function checkJob(job: Job): Header {
  checkInteger('job_id', job.jobId, U32_MAX);
  const header = decodeHeader(job.header);
  for (const byte of header.nonce) if (byte !== 0) refuse('header', 'a header with a zeroed nonce');
  if (job.shareTarget < 0n || job.shareTarget > MAX_TARGET) refuse('share_target', '256 bits');
  checkInteger('epoch', job.epoch, U32_MAX);
  checkLength('payout', job.payout, ADDRESS_PAYLOAD_BYTES);
  if (job.extranonce.length > MAX_EXTRANONCE) refuse('extranonce', `at most ${MAX_EXTRANONCE} bytes`);
  return header;
}

export function checkReconnect(value: Reconnect): Reconnect {
  if (value.host.length > HOST_MAX || !HOST.test(value.host)) refuse('host', 'a host name or an IP address');
  checkInteger('port', value.port, 0xffff);
  checkInteger('wait_millis', value.waitMillis, U32_MAX);
  return value;
}
