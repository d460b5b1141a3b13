/**
 * svc-mining-v2, both directions (docs/protocol/stratum.md, S14, S20 to S34 and S70): the payloads of its frames, little-endian.
 * Encoders return whole frames; decoders take the type and payload that frame.ts cut out, and throw ProtocolError.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../address.ts';
import type { ReceiptEntry } from '../books/receipt.ts';
import { ByteReader, type Bytes, ByteWriter, fromHex, toHex } from '../bytes.ts';
import { ID_BYTES } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { HEADER_BYTES, NONCE_OFFSET } from '../ledger/header.ts';
import { MAX_EXTRANONCE } from '../ledger/tag.ts';
import { targetFromBytes, targetToBytes } from '../ledger/target.ts';
import { CODE, codeFromByte, type ErrorReply, type StratumCode, stratumError } from './errors.ts';
import {
  checkFarmJob,
  checkFarmOffer,
  checkRig,
  checkRigs,
  type FarmJob,
  type FarmOffer,
  type FarmSubmit,
  plainPart,
  type Rig,
  readFarmJob,
} from './farm.ts';
import { MAX_PAYLOAD_BYTES, type RawFrame } from './frame.ts';
import {
  type Authorize,
  type Authorized,
  checkAuthorize,
  checkAuthorized,
  checkInteger,
  checkJob,
  checkLength,
  checkReconnect,
  checkSubscribe,
  checkSubscribed,
  checkText,
  type Job,
  type Reconnect,
  SESSION_BYTES,
  type Submit,
  type Subscribe,
  type Subscribed,
  U32_MAX,
} from './messages.ts';
import { NONCE_BYTES, PREFIX_MAX_BYTES } from './nonce.ts';
import {
  type ReceiptsOffer,
  readEntry,
  readHead,
  readOffer,
  type SignedHead,
  writeEntry,
  writeHead,
  writeOffer,
} from './receipt-messages.ts';

export const FRAME_TYPES = {
  subscribe: 0x01,
  subscribed: 0x02,
  authorize: 0x03,
  authorized: 0x04,
  receipts: 0x05,
  receiptsOffer: 0x06,
  farm: 0x07,
  farmOffer: 0x08,
  rig: 0x09,
  job: 0x10,
  farmJob: 0x11,
  submit: 0x20,
  accepted: 0x21,
  rejected: 0x22,
  block: 0x23,
  farmSubmit: 0x24,
  ping: 0x30,
  pong: 0x31,
  error: 0x3e,
  reconnect: 0x3f,
  receiptHead: 0x40,
  receipt: 0x41,
} as const;

export type Ping = { type: 'ping'; value: bigint };
export type Pong = { type: 'pong'; value: bigint };

export type ClientFrame =
  | { type: 'subscribe'; subscribe: Subscribe }
  | { type: 'authorize'; authorize: Authorize }
  | { type: 'submit'; sequence: number; submit: Submit }
  | { type: 'receipts' }
  | { type: 'farm'; rigs: number }
  | { type: 'rig'; rig: Rig }
  | { type: 'farmSubmit'; sequence: number; submit: FarmSubmit }
  | Ping
  | Pong;

export type ServerFrame =
  | { type: 'subscribed'; subscribed: Subscribed }
  | { type: 'authorized'; authorized: Authorized }
  | { type: 'job'; job: Job }
  | { type: 'accepted'; through: number; count: number; work: bigint }
  | { type: 'rejected'; sequence: number; code: StratumCode }
  | { type: 'block'; sequence: number; blockId: Bytes }
  | Ping
  | Pong
  | { type: 'error'; error: ErrorReply }
  | { type: 'reconnect'; reconnect: Reconnect }
  | { type: 'receiptsOffer'; offer: ReceiptsOffer }
  | { type: 'receiptHead'; signed: SignedHead }
  | { type: 'receipt'; entry: ReceiptEntry }
  | { type: 'farmOffer'; offer: FarmOffer }
  | { type: 'farmJob'; job: FarmJob };

function finish(type: number, payload: ByteWriter): Uint8Array<ArrayBuffer> {
  const bytes = payload.done();
  if (bytes.length > MAX_PAYLOAD_BYTES) throw new ProtocolError('too_long', 'the payload is too long');
  return new ByteWriter(bytes.length + 3).u16(bytes.length).u8(type).raw(bytes).done();
}

/** One of the most frequent frames, written in place: 19 bytes. */
export function encodeSubmitFrame(sequence: number, submit: Submit): Uint8Array<ArrayBuffer> {
  checkLength('nonce', submit.nonce, NONCE_BYTES);
  return new ByteWriter(19).u16(16).u8(FRAME_TYPES.submit).u32(sequence).u32(submit.jobId).raw(submit.nonce).done();
}

export function encodeClientFrame(frame: ClientFrame): Uint8Array<ArrayBuffer> {
  const payload = new ByteWriter(64);
  switch (frame.type) {
    case 'subscribe': {
      const { agent, tag, session } = checkSubscribe(frame.subscribe);
      payload.text(agent).text(tag);
      payload.short(session === null ? new Uint8Array(0) : fromHex(session, SESSION_BYTES));
      break;
    }
    case 'authorize': {
      const { username, password } = checkAuthorize(frame.authorize);
      payload.text(username).text(password);
      break;
    }
    case 'submit':
      return encodeSubmitFrame(frame.sequence, frame.submit);
    case 'receipts':
      break;
    case 'farm':
      payload.u16(checkRigs(frame.rigs));
      break;
    case 'rig': {
      const { index, worker } = checkRig(frame.rig);
      payload.u16(index).text(worker);
      break;
    }
    case 'farmSubmit': {
      const { jobId, generation, rig, nonce } = frame.submit;
      payload
        .u32(frame.sequence)
        .u32(jobId)
        .u32(generation)
        .u16(rig)
        .raw(checkLength('nonce', nonce, NONCE_BYTES));
      break;
    }
    case 'ping':
    case 'pong':
      payload.u64(frame.value);
      break;
  }
  return finish(FRAME_TYPES[frame.type], payload);
}

function writeSubscribed(payload: ByteWriter, value: Subscribed): void {
  const { session, noncePrefix, network, server, pool } = checkSubscribed(value);
  payload.raw(fromHex(session, SESSION_BYTES)).short(noncePrefix).u32(network);
  payload
    .text(pool?.address ?? '')
    .text(pool?.name ?? '')
    .text(server);
}

function writeJob(payload: ByteWriter, job: Job): void {
  payload
    .u32(job.jobId)
    .u8(job.clean ? 1 : 0)
    .raw(job.header.subarray(0, NONCE_OFFSET));
  payload.raw(targetToBytes(job.shareTarget)).u32(job.epoch).short(job.payout).short(job.extranonce);
}

const RETRY = 'retry_after_millis=';
const RETRY_TEXT = /^retry_after_millis=(0|[1-9][0-9]{0,9})$/;

/** The text of code 28 is the time to wait, in one spelling; of every other code it is for people. */
function writeError(payload: ByteWriter, error: ErrorReply): void {
  if ((error.code === CODE.banned) !== (error.retryAfterMillis !== null))
    throw new ProtocolError('out_of_range', 'retry_after_millis comes with code 28 and only with it');
  payload.u8(stratumError(error.code).byte);
  if (error.retryAfterMillis === null) payload.text(checkText('text', error.message));
  else payload.text(`${RETRY}${checkInteger('retry_after_millis', error.retryAfterMillis, U32_MAX)}`);
}

export function encodeServerFrame(frame: ServerFrame): Uint8Array<ArrayBuffer> {
  const payload = new ByteWriter(frame.type === 'job' || frame.type === 'farmJob' ? 512 : 64);
  switch (frame.type) {
    case 'subscribed':
      writeSubscribed(payload, frame.subscribed);
      break;
    case 'authorized': {
      const { address, worker } = checkAuthorized(frame.authorized);
      payload.text(address).text(worker);
      break;
    }
    case 'job':
      checkJob(frame.job);
      writeJob(payload, frame.job);
      break;
    case 'farmJob':
      writeJob(payload, plainPart(checkFarmJob(frame.job)));
      payload.u32(frame.job.firstGeneration);
      break;
    case 'farmOffer': {
      const { rigs, submitsPerSecond } = checkFarmOffer(frame.offer);
      payload.u16(rigs).u32(submitsPerSecond);
      break;
    }
    case 'accepted':
      payload.u32(frame.through).u32(frame.count).u128(frame.work);
      break;
    case 'rejected':
      payload.u32(frame.sequence).u8(stratumError(frame.code).byte);
      break;
    case 'block':
      payload.u32(frame.sequence).raw(checkLength('block_id', frame.blockId, ID_BYTES));
      break;
    case 'ping':
    case 'pong':
      payload.u64(frame.value);
      break;
    case 'error':
      writeError(payload, frame.error);
      break;
    case 'reconnect': {
      const { host, port, waitMillis } = checkReconnect(frame.reconnect);
      payload.text(host).u16(port).u32(waitMillis);
      break;
    }
    case 'receiptsOffer':
      writeOffer(payload, frame.offer);
      break;
    case 'receiptHead':
      writeHead(payload, frame.signed);
      break;
    case 'receipt':
      writeEntry(payload, frame.entry);
      break;
  }
  return finish(FRAME_TYPES[frame.type], payload);
}

function readSubscribe(reader: ByteReader): Subscribe {
  const agent = reader.text();
  const tag = reader.text();
  const session = reader.short(SESSION_BYTES);
  if (session.length !== 0) checkLength('session', session, SESSION_BYTES);
  return checkSubscribe({ agent, tag, session: session.length === 0 ? null : toHex(session) });
}

function readSubscribed(reader: ByteReader): Subscribed {
  const session = toHex(reader.take(SESSION_BYTES));
  const noncePrefix = reader.short(PREFIX_MAX_BYTES);
  const network = reader.u32();
  const address = reader.text();
  const name = reader.text();
  const server = reader.text();
  if (address === '' && name !== '') throw new ProtocolError('not_canonical', 'a pool name without a pool address');
  return checkSubscribed({ session, noncePrefix, network, server, pool: address === '' ? null : { address, name } });
}

function readJob(reader: ByteReader): Job {
  const jobId = reader.u32();
  const flags = reader.u8();
  if (flags > 1) throw new ProtocolError('out_of_range', `unknown job flags ${flags}`);
  const header = new Uint8Array(HEADER_BYTES);
  header.set(reader.take(NONCE_OFFSET));
  const job: Job = {
    jobId,
    header,
    shareTarget: targetFromBytes(reader.take(32)),
    epoch: reader.u32(),
    payout: reader.short(ADDRESS_PAYLOAD_BYTES),
    extranonce: reader.short(MAX_EXTRANONCE),
    clean: flags === 1,
  };
  checkJob(job);
  return job;
}

function readError(reader: ByteReader): ErrorReply {
  const code = codeFromByte(reader.u8());
  const text = checkText('text', reader.text());
  if (code !== 28) return { code, message: text, retryAfterMillis: null };
  const millis = RETRY_TEXT.exec(text)?.[1];
  if (millis === undefined) throw new ProtocolError('not_canonical', `code 28 carries the text ${RETRY}<number>`);
  const retryAfterMillis = checkInteger('retry_after_millis', Number(millis), U32_MAX);
  return { code, message: stratumError(28).meaning, retryAfterMillis };
}

function whole<T>(payload: Bytes, read: (reader: ByteReader) => T): T {
  if (payload.length > MAX_PAYLOAD_BYTES) throw new ProtocolError('too_long', 'the payload is too long');
  const reader = new ByteReader(payload);
  const value = read(reader);
  reader.end();
  return value;
}

/** Decodes the messages that a server receives. */
export function decodeClientFrame({ type, payload }: RawFrame): ClientFrame {
  return whole(payload, (reader): ClientFrame => {
    switch (type) {
      case FRAME_TYPES.submit:
        return {
          type: 'submit',
          sequence: reader.u32(),
          submit: { jobId: reader.u32(), nonce: reader.take(NONCE_BYTES) },
        };
      case FRAME_TYPES.subscribe:
        return { type: 'subscribe', subscribe: readSubscribe(reader) };
      case FRAME_TYPES.authorize:
        return { type: 'authorize', authorize: checkAuthorize({ username: reader.text(), password: reader.text() }) };
      case FRAME_TYPES.ping:
        return { type: 'ping', value: reader.u64() };
      case FRAME_TYPES.pong:
        return { type: 'pong', value: reader.u64() };
      case FRAME_TYPES.receipts:
        return { type: 'receipts' };
      case FRAME_TYPES.farm:
        return { type: 'farm', rigs: checkRigs(reader.u16()) };
      case FRAME_TYPES.rig:
        return { type: 'rig', rig: checkRig({ index: reader.u16(), worker: reader.text() }) };
      case FRAME_TYPES.farmSubmit:
        return {
          type: 'farmSubmit',
          sequence: reader.u32(),
          submit: {
            jobId: reader.u32(),
            generation: reader.u32(),
            rig: reader.u16(),
            nonce: reader.take(NONCE_BYTES),
          },
        };
      default:
        throw new ProtocolError('unsupported_kind', `a client sends no frame of type ${type}`);
    }
  });
}

/** Decodes the messages that a miner receives. */
export function decodeServerFrame({ type, payload }: RawFrame): ServerFrame {
  return whole(payload, (reader): ServerFrame => {
    switch (type) {
      case FRAME_TYPES.subscribed:
        return { type: 'subscribed', subscribed: readSubscribed(reader) };
      case FRAME_TYPES.authorized:
        return { type: 'authorized', authorized: checkAuthorized({ address: reader.text(), worker: reader.text() }) };
      case FRAME_TYPES.job:
        return { type: 'job', job: readJob(reader) };
      case FRAME_TYPES.accepted:
        return { type: 'accepted', through: reader.u32(), count: reader.u32(), work: reader.u128() };
      case FRAME_TYPES.rejected:
        return { type: 'rejected', sequence: reader.u32(), code: codeFromByte(reader.u8()) };
      case FRAME_TYPES.block:
        return { type: 'block', sequence: reader.u32(), blockId: reader.take(ID_BYTES) };
      case FRAME_TYPES.ping:
        return { type: 'ping', value: reader.u64() };
      case FRAME_TYPES.pong:
        return { type: 'pong', value: reader.u64() };
      case FRAME_TYPES.error:
        return { type: 'error', error: readError(reader) };
      case FRAME_TYPES.reconnect:
        return {
          type: 'reconnect',
          reconnect: checkReconnect({ host: reader.text(), port: reader.u16(), waitMillis: reader.u32() }),
        };
      case FRAME_TYPES.receiptsOffer:
        return { type: 'receiptsOffer', offer: readOffer(reader) };
      case FRAME_TYPES.receiptHead:
        return { type: 'receiptHead', signed: readHead(reader) };
      case FRAME_TYPES.receipt:
        return { type: 'receipt', entry: readEntry(reader) };
      case FRAME_TYPES.farmOffer:
        return { type: 'farmOffer', offer: checkFarmOffer({ rigs: reader.u16(), submitsPerSecond: reader.u32() }) };
      case FRAME_TYPES.farmJob:
        return { type: 'farmJob', job: readFarmJob(readJob(reader), reader) };
      default:
        throw new ProtocolError('unsupported_kind', `a server sends no frame of type ${type}`);
    }
  });
}
