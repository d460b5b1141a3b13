/** A conversation in binary frames (docs/protocol/stratum.md, v2). Accepted submits are acknowledged in batches. */
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { NONCE_OFFSET, REWARD_ROOT_OFFSET } from '../../protocol/ledger/header.ts';
import { targetFromBytes } from '../../protocol/ledger/target.ts';
import { answerTo, CODE, type ErrorReply, errorReply } from '../../protocol/stratum/errors.ts';
import type { FarmOffer } from '../../protocol/stratum/farm.ts';
import { FrameSplitter, readFrame } from '../../protocol/stratum/frame.ts';
import type { JobPart } from '../../protocol/stratum/job-template.ts';
import type { Authorized, Reconnect, Subscribed } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import { type ClientFrame, decodeClientFrame, encodeServerFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { AnswerId, FarmJobPart } from '../session/voice.ts';
import type { ReceiptMessage } from '../shares/receipts.ts';
import { Conversation } from './conversation.ts';

export class V2Conversation extends Conversation {
  #splitter: FrameSplitter | null = null;
  #out: Bytes[] = [];
  /** Submits are numbered from 1, one up each time (S27). */
  #lastSequence = 0;
  #through = 0;
  #acknowledged = 0;
  #count = 0;
  /** Judged submits after one that is not judged yet. */
  #ahead: Set<number> | null = null;

  override receive(chunk: Bytes): void {
    this.#splitter ??= new FrameSplitter();
    try {
      this.#splitter.push(chunk, (type, payload) => this.#takeFrame(type, payload));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#tooLong(error);
    }
    if (this.#splitter?.held === 0) this.#splitter = null;
    this.settle();
  }

  override receiveMessage(message: Bytes): void {
    try {
      const { type, payload } = readFrame(message);
      this.#takeFrame(type, payload);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#tooLong(error);
    }
    this.flush();
  }

  #takeFrame(type: number, payload: Bytes): boolean {
    let frame: ClientFrame | ProtocolError;
    try {
      frame = decodeClientFrame({ type, payload });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      frame = error;
    }
    return this.take(frame);
  }

  #tooLong(error: ProtocolError): void {
    this.refuse(null, errorReply(CODE.parse_error, error.message));
    this.violation('a frame was too long or broken');
  }

  protected override handle(frame: ClientFrame | ProtocolError): void {
    const { session } = this;
    if (frame instanceof ProtocolError) {
      session.refuse(null, answerTo(frame), frame.message);
      return;
    }
    switch (frame.type) {
      case 'submit':
        if (this.#isNext(frame.sequence)) session.submit(frame.sequence, frame.submit.jobId, frame.submit.nonce);
        return;
      case 'farmSubmit':
        if (this.#isNext(frame.sequence)) session.farmSubmit(frame.sequence, frame.submit);
        return;
      case 'subscribe': {
        session.subscribe(null, frame.subscribe);
        return;
      }
      case 'authorize': {
        session.authorize(null, frame.authorize);
        return;
      }
      case 'ping': {
        session.ping(null, frame.value);
        return;
      }
      case 'receipts': {
        session.receipts(null);
        return;
      }
      case 'pong':
        session.pong();
        return;
      case 'farm':
        session.farm(frame.rigs);
        return;
      case 'rig':
        session.rig(frame.rig);
        return;
    }
  }

  #isNext(sequence: number): boolean {
    const next = this.#lastSequence + 1;
    if (sequence !== next) {
      this.refuse(null, errorReply(CODE.invalid_request, `the next sequence number is ${next}`));
      this.violation('a sequence number was left out or repeated');
      return false;
    }
    this.#lastSequence = next;
    return true;
  }

  #say(frame: ServerFrame): void {
    this.#write(encodeServerFrame(frame));
  }

  #write(bytes: Bytes): void {
    if (this.peer.framed) {
      this.peer.write(bytes, false);
      return;
    }
    this.#out.push(bytes);
    this.touch();
  }

  override flush(): void {
    this.isTouched = false;
    if (this.#out.length === 0) return;
    const bytes = this.#out.length === 1 ? (this.#out[0] as Bytes) : concat(...this.#out);
    this.#out = [];
    this.peer.write(bytes, false);
  }

  #judged(sequence: number): void {
    if (sequence !== this.#through + 1) {
      this.#ahead ??= new Set();
      this.#ahead.add(sequence);
      return;
    }
    this.#through = sequence;
    while (this.#ahead?.delete(this.#through + 1)) this.#through++;
    if (this.#ahead?.size === 0) this.#ahead = null;
    this.desk.acknowledgeSoon(this);
  }

  /** One frame for the contiguous run of judged submits; the desk calls it at the latest after 250 ms. */
  acknowledge(): void {
    if (this.#through === this.#acknowledged) return;
    this.#acknowledged = this.#through;
    this.#say({ type: 'accepted', through: this.#through, count: this.#count, work: this.session.tally.work });
    this.#count = 0;
  }

  override accepted(id: AnswerId, _work: bigint, blockId: Bytes | null): void {
    this.#count++;
    if (blockId !== null) this.#say({ type: 'block', sequence: id as number, blockId });
    this.#judged(id as number);
  }

  override rejected(id: AnswerId, error: ErrorReply): void {
    this.#say({ type: 'rejected', sequence: id as number, code: error.code });
    this.#judged(id as number);
  }

  override subscribed(_id: AnswerId, subscribed: Subscribed): void {
    this.#say({ type: 'subscribed', subscribed });
  }

  override authorized(_id: AnswerId, authorized: Authorized): void {
    this.#say({ type: 'authorized', authorized });
  }

  override refuse(_id: AnswerId, error: ErrorReply): void {
    this.#say({ type: 'error', error });
  }

  override pong(_id: AnswerId, value: bigint): void {
    this.#say({ type: 'pong', value });
  }

  override job(template: ServedTemplate, part: JobPart): void {
    const job = template.frame.fill(part);
    if (this.#out.length > 0) {
      // In one write with the pending output.
      this.#out.push(job.slice());
      this.flush();
      return;
    }
    this.peer.write(job, false);
    // The buffer can be reused once the system has accepted all of it.
    if (this.peer.queued > 0) template.frame.keep();
  }

  override farmJob(template: ServedTemplate, part: FarmJobPart): void {
    const header = template.header.slice().fill(0, REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + ID_BYTES);
    header.fill(0, NONCE_OFFSET);
    const shareTarget = targetFromBytes(part.shareTarget);
    this.#say({ type: 'farmJob', job: { ...part, header, epoch: template.epoch, shareTarget } });
    this.flush();
  }

  override farmOffer(offer: FarmOffer): void {
    this.#say({ type: 'farmOffer', offer });
  }

  override reconnect(reconnect: Reconnect): void {
    this.#say({ type: 'reconnect', reconnect });
  }

  override receipts(_id: AnswerId, offer: ReceiptsOffer): void {
    this.#say({ type: 'receiptsOffer', offer });
  }

  override receipt(message: ReceiptMessage, isFirst: boolean): void {
    for (const frame of message.frames(isFirst)) this.#write(frame);
  }
}
