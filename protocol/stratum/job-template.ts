/**
 * A job for many connections (docs/protocol/stratum.md, S30): everything that is the same for all is written once, and
 * each connection's message is a copy with its own few fields put in at known offsets. Equal, byte for byte, to what
 * encodeNotification and encodeServerFrame give for the same job; a test keeps it so.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../address.ts';
import { type Bytes, utf8 } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { HEADER_BYTES, NONCE_OFFSET, REWARD_ROOT_OFFSET } from '../header.ts';
import { ID_BYTES } from '../identifier.ts';
import { MAX_EXTRANONCE } from '../tag.ts';
import { FRAME_HEADER_BYTES } from './frame.ts';
import { checkInteger, checkLength, type Job, U32_MAX } from './messages.ts';
import { encodeNotification } from './v1-answer.ts';
import { encodeServerFrame, FRAME_TYPES } from './v2.ts';

/** What differs between connections. `rewardRoot` is that of payout and extranonce (reward.ts); `shareTarget` has 32 bytes. */
export interface JobPart {
  jobId: number;
  rewardRoot: Bytes;
  shareTarget: Bytes;
  payout: Bytes;
  extranonce: Bytes;
  clean: boolean;
}

const TARGET_BYTES = 32;
const HIGH_DIGIT = new Uint8Array(256);
const LOW_DIGIT = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const digits = byte.toString(16).padStart(2, '0');
  HIGH_DIGIT[byte] = digits.charCodeAt(0);
  LOW_DIGIT[byte] = digits.charCodeAt(1);
}

function putHex(into: Uint8Array, at: number, bytes: Bytes): void {
  const length = bytes.length;
  for (let i = 0; i < length; i++, at += 2) {
    const byte = bytes[i] as number;
    into[at] = HIGH_DIGIT[byte] as number;
    into[at + 1] = LOW_DIGIT[byte] as number;
  }
}

function checkPart(part: JobPart): void {
  checkInteger('job_id', part.jobId, U32_MAX);
  checkLength('reward_root', part.rewardRoot, ID_BYTES);
  checkLength('share_target', part.shareTarget, TARGET_BYTES);
  checkLength('payout', part.payout, ADDRESS_PAYLOAD_BYTES);
  if (part.extranonce.length > MAX_EXTRANONCE)
    throw new ProtocolError('too_long', `an extranonce has at most ${MAX_EXTRANONCE} bytes`);
}

/** svc-mining-v1: messages end with their LF, which a WebSocket text frame may carry too. */
export class NotifyTemplate {
  readonly #head: string;
  /** Whole messages to copy, by length of the extranonce and `clean`: a copy is cheaper than putting one together. */
  readonly #shapes = new Map<number, Uint8Array<ArrayBuffer>>();
  readonly #jobId: number;
  readonly #rewardRoot: number;
  readonly #shareTarget: number;
  readonly #payout: number;

  /** Of `job`, only what is no part of a JobPart matters. */
  constructor(job: Job) {
    const text = encodeNotification({ method: 'mining.notify', params: { ...job, extranonce: new Uint8Array(0) } });
    const after = (mark: string): number => text.indexOf(mark) + mark.length;
    this.#head = text.slice(0, after('"extranonce":"'));
    this.#jobId = after('"job_id":"');
    this.#rewardRoot = after('"header":"') + 2 * REWARD_ROOT_OFFSET;
    this.#shareTarget = after('"share_target":"');
    this.#payout = after('"payout":"');
  }

  #shape(extranonceLength: number, clean: boolean): Uint8Array<ArrayBuffer> {
    const key = 2 * extranonceLength + (clean ? 1 : 0);
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      shape = utf8(`${this.#head}${'00'.repeat(extranonceLength)}","clean":${clean}}}\n`);
      this.#shapes.set(key, shape);
    }
    return shape;
  }

  fill(part: JobPart): Uint8Array<ArrayBuffer> {
    checkPart(part);
    const message = this.#shape(part.extranonce.length, part.clean).slice();
    const { jobId } = part;
    for (let i = 0; i < 8; i++) message[this.#jobId + i] = LOW_DIGIT[(jobId >>> (28 - 4 * i)) & 15] as number;
    putHex(message, this.#rewardRoot, part.rewardRoot);
    putHex(message, this.#shareTarget, part.shareTarget);
    putHex(message, this.#payout, part.payout);
    putHex(message, this.#head.length, part.extranonce);
    return message;
  }
}

const JOB_ID_AT = FRAME_HEADER_BYTES;
const FLAGS_AT = JOB_ID_AT + 4;
const HEADER_AT = FLAGS_AT + 1;
const SHARE_TARGET_AT = HEADER_AT + NONCE_OFFSET;
const PAYOUT_AT = SHARE_TARGET_AT + TARGET_BYTES + 4 + 1;
const EXTRANONCE_AT = PAYOUT_AT + ADDRESS_PAYLOAD_BYTES;

/** svc-mining-v2: messages are whole frames. */
export class JobFrameTemplate {
  readonly #head: Uint8Array<ArrayBuffer>;

  constructor(job: Job) {
    checkLength('header', job.header, HEADER_BYTES);
    this.#head = encodeServerFrame({ type: 'job', job: { ...job, extranonce: new Uint8Array(0) } });
  }

  fill(part: JobPart): Uint8Array<ArrayBuffer> {
    checkPart(part);
    const frame = new Uint8Array(EXTRANONCE_AT + 1 + part.extranonce.length);
    frame.set(this.#head);
    const payload = frame.length - FRAME_HEADER_BYTES;
    frame[0] = payload & 0xff;
    frame[1] = payload >> 8;
    frame[2] = FRAME_TYPES.job;
    for (let i = 0; i < 4; i++) frame[JOB_ID_AT + i] = (part.jobId >>> (8 * i)) & 0xff;
    frame[FLAGS_AT] = part.clean ? 1 : 0;
    frame.set(part.rewardRoot, HEADER_AT + REWARD_ROOT_OFFSET);
    frame.set(part.shareTarget, SHARE_TARGET_AT);
    frame.set(part.payout, PAYOUT_AT);
    frame[EXTRANONCE_AT] = part.extranonce.length;
    frame.set(part.extranonce, EXTRANONCE_AT + 1);
    return frame;
  }
}
