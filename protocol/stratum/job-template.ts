/**
 * A job for many connections (docs/protocol/stratum.md, S30): everything that is the same for all is written once, and
 * each connection's message is the same bytes with its own few fields put in at known offsets. Equal, byte for byte, to
 * what encodeNotification and encodeServerFrame give for the same job; a test keeps it so.
 *
 * `fill` returns bytes that are valid until the next `fill`: a socket that writes them at once needs no copy. A caller
 * that still needs them calls `keep`, and the next message uses another buffer.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../address.ts';
import { type Bytes, utf8 } from '../bytes.ts';
import { ID_BYTES } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { NONCE_OFFSET, REWARD_ROOT_OFFSET } from '../ledger/header.ts';
import { MAX_EXTRANONCE } from '../ledger/tag.ts';
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

export type Allocate = (size: number) => Uint8Array<ArrayBuffer>;
const allocateBytes: Allocate = (size) => new Uint8Array(size);

/** A reusable message, and its last parts: unchanged parts are not written again. */
class Message {
  bytes: Uint8Array<ArrayBuffer>;
  shareTarget: Bytes | null = null;
  payout: Bytes | null = null;
  isKept = false;
  readonly #allocate: Allocate;

  constructor(bytes: Bytes, allocate: Allocate) {
    this.#allocate = allocate;
    this.bytes = allocate(bytes.length);
    this.bytes.set(bytes);
  }

  /** To be filled now: the same bytes, or a copy when they were kept. */
  open(): Uint8Array<ArrayBuffer> {
    if (this.isKept) {
      const copy = this.#allocate(this.bytes.length);
      copy.set(this.bytes);
      this.bytes = copy;
      this.isKept = false;
    }
    return this.bytes;
  }
}

/** svc-mining-v1: messages end with their LF, which a WebSocket text frame may carry too. */
export class NotifyTemplate {
  readonly #head: string;
  readonly #allocate: Allocate;
  /** By length of the extranonce and `clean`. */
  readonly #messages = new Map<number, Message>();
  #last: Message | null = null;
  readonly #jobId: number;
  readonly #rewardRoot: number;
  readonly #shareTarget: number;
  readonly #payout: number;

  /** Of `job`, only what is no part of a JobPart matters. */
  constructor(job: Job, allocate = allocateBytes) {
    const text = encodeNotification({ method: 'mining.notify', params: { ...job, extranonce: new Uint8Array(0) } });
    const after = (mark: string): number => text.indexOf(mark) + mark.length;
    this.#head = text.slice(0, after('"extranonce":"'));
    this.#jobId = after('"job_id":"');
    this.#rewardRoot = after('"header":"') + 2 * REWARD_ROOT_OFFSET;
    this.#shareTarget = after('"share_target":"');
    this.#payout = after('"payout":"');
    this.#allocate = allocate;
  }

  #message(extranonceLength: number, clean: boolean): Message {
    const key = 2 * extranonceLength + (clean ? 1 : 0);
    let message = this.#messages.get(key);
    if (message === undefined) {
      const text = `${this.#head}${'00'.repeat(extranonceLength)}","clean":${clean}}}\n`;
      message = new Message(utf8(text), this.#allocate);
      this.#messages.set(key, message);
    }
    return message;
  }

  /** Holds until the next fill; a part's arrays must not change after they were given here. */
  fill(part: JobPart): Uint8Array<ArrayBuffer> {
    checkPart(part);
    const message = this.#message(part.extranonce.length, part.clean);
    this.#last = message;
    const bytes = message.open();
    const { jobId } = part;
    for (let i = 0; i < 8; i++) bytes[this.#jobId + i] = LOW_DIGIT[(jobId >>> (28 - 4 * i)) & 15] as number;
    putHex(bytes, this.#rewardRoot, part.rewardRoot);
    if (message.shareTarget !== part.shareTarget) putHex(bytes, this.#shareTarget, part.shareTarget);
    if (message.payout !== part.payout) putHex(bytes, this.#payout, part.payout);
    message.shareTarget = part.shareTarget;
    message.payout = part.payout;
    putHex(bytes, this.#head.length, part.extranonce);
    return bytes;
  }

  /** What `fill` gave last is still in use. */
  keep(): void {
    if (this.#last !== null) this.#last.isKept = true;
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
  readonly #allocate: Allocate;
  /** By length of the extranonce. */
  readonly #messages = new Map<number, Message>();
  #last: Message | null = null;

  constructor(job: Job, allocate = allocateBytes) {
    this.#head = encodeServerFrame({ type: 'job', job: { ...job, extranonce: new Uint8Array(0) } });
    this.#allocate = allocate;
  }

  #message(extranonceLength: number): Message {
    let message = this.#messages.get(extranonceLength);
    if (message === undefined) {
      const frame = new Uint8Array(EXTRANONCE_AT + 1 + extranonceLength);
      frame.set(this.#head);
      const payload = frame.length - FRAME_HEADER_BYTES;
      frame[0] = payload & 0xff;
      frame[1] = payload >> 8;
      frame[2] = FRAME_TYPES.job;
      frame[EXTRANONCE_AT] = extranonceLength;
      message = new Message(frame, this.#allocate);
      this.#messages.set(extranonceLength, message);
    }
    return message;
  }

  /** Holds until the next fill; a part's arrays must not change after they were given here. */
  fill(part: JobPart): Uint8Array<ArrayBuffer> {
    checkPart(part);
    const message = this.#message(part.extranonce.length);
    this.#last = message;
    const frame = message.open();
    for (let i = 0; i < 4; i++) frame[JOB_ID_AT + i] = (part.jobId >>> (8 * i)) & 0xff;
    frame[FLAGS_AT] = part.clean ? 1 : 0;
    frame.set(part.rewardRoot, HEADER_AT + REWARD_ROOT_OFFSET);
    if (message.shareTarget !== part.shareTarget) frame.set(part.shareTarget, SHARE_TARGET_AT);
    if (message.payout !== part.payout) frame.set(part.payout, PAYOUT_AT);
    message.shareTarget = part.shareTarget;
    message.payout = part.payout;
    frame.set(part.extranonce, EXTRANONCE_AT + 1);
    return frame;
  }

  /** What `fill` gave last is still in use. */
  keep(): void {
    if (this.#last !== null) this.#last.isKept = true;
  }
}
