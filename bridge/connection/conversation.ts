/**
 * One connection's bytes: cuts what comes in into requests, hands them to the session, and puts what the session says
 * into bytes. v1 and v2 differ here and nowhere else. Nothing here knows sockets: a Peer takes the bytes.
 */
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { answerTo, type ErrorReply, errorReply } from '../../protocol/stratum/errors.ts';
import { FrameSplitter, readFrame } from '../../protocol/stratum/frame.ts';
import type { JobPart } from '../../protocol/stratum/job-template.ts';
import { LineSplitter } from '../../protocol/stratum/line.ts';
import type { Authorized, Reconnect, Subscribed, WorkerStats } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import { encodeAccepted, encodeError, encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, type Invalid, type Request, type RequestId } from '../../protocol/stratum/v1-request.ts';
import { type ClientFrame, decodeClientFrame, encodeServerFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { StratumService } from '../service.ts';
import { Session } from '../session/session.ts';
import type { SessionDesk } from '../session/session-desk.ts';
import type { AnswerId, Voice } from '../session/voice.ts';
import type { ReceiptMessage } from '../shares/receipts.ts';

/** Where a conversation's bytes go. `framed` peers (WebSockets) take one message at a time, others a stream. */
export interface Peer {
  readonly framed: boolean;
  /** Bytes written and not yet taken by the system. */
  readonly queued: number;
  /** `text` may hold more than ASCII when `wide` is set. Once `queued` is 0, `data` is not needed any more. */
  write(data: Bytes | string, wide: boolean): void;
  /** Closes after what was written. */
  end(): void;
  destroy(): void;
}

export interface ConversationDesk extends SessionDesk<Session> {
  /** The conversation has bytes to be flushed at the end of a batch of verdicts. */
  touched(conversation: Conversation): void;
  /** A v2 acknowledgement is due within 250 ms. */
  acknowledgeSoon(conversation: Conversation): void;
  /** The session says nothing more; `reason` is for figures and the log. */
  ended(conversation: Conversation, reason: string): void;
}

export abstract class Conversation implements Voice {
  readonly session: Session;
  readonly desk: ConversationDesk;
  readonly peer: Peer;
  readonly address: string;
  readonly sinceMillis: number;
  /** Requests that came while the one before them was waiting for the main thread. */
  #held: unknown[] | null = null;
  isEnding = false;
  isTouched = false;
  /** Since when the peer has had bytes it did not take; 0 when it has none. */
  stalledSinceMillis = 0;

  constructor(service: StratumService, desk: ConversationDesk, peer: Peer, address: string) {
    this.desk = desk;
    this.peer = peer;
    this.address = address;
    this.sinceMillis = desk.now();
    this.session = new Session(service, desk, this);
  }

  /** A chunk of a stream. */
  abstract receive(chunk: Bytes): void;
  /** One whole message, as a WebSocket brings it. */
  abstract receiveMessage(message: Bytes): void;
  /** Gives the peer what was said since. */
  abstract flush(): void;
  protected abstract handle(request: unknown): void;

  /** After the session was busy: what was held back is handled, until it is busy again. */
  proceed(): void {
    while (this.#held !== null && !this.session.busy && !this.isEnding) {
      const next = this.#held.shift();
      if (this.#held.length === 0) this.#held = null;
      this.handle(next);
    }
    this.flush();
  }

  /** After a chunk: what is about to be answered goes out with what was, in one write. */
  protected settle(): void {
    if (!this.session.busy || this.isEnding) this.flush();
  }

  /** Returns false when nothing more may be read. */
  protected take(request: unknown): boolean {
    if (this.isEnding) return false;
    if (!this.session.busy) this.handle(request);
    else {
      this.#held ??= [];
      if (this.#held.length >= this.desk.limits.heldRequests) this.violation('too many requests wait for an answer');
      else this.#held.push(request);
    }
    return !this.isEnding;
  }

  /** Something no correct miner does: the connection ends. */
  protected violation(reason: string): void {
    this.session.fault('protocol_violation');
    this.end(reason);
  }

  end(reason: string): void {
    if (this.isEnding) return;
    this.isEnding = true;
    this.#held = null;
    this.desk.ended(this, reason);
  }

  protected touch(): void {
    if (this.isTouched) return;
    this.isTouched = true;
    this.desk.touched(this);
  }

  abstract subscribed(id: AnswerId, value: Subscribed): void;
  abstract authorized(id: AnswerId, value: Authorized): void;
  abstract refuse(id: AnswerId, error: ErrorReply): void;
  abstract accepted(id: AnswerId, work: bigint, blockId: Bytes | null): void;
  abstract rejected(id: AnswerId, error: ErrorReply): void;
  abstract stats(id: AnswerId, value: WorkerStats): void;
  abstract pong(id: AnswerId, value: bigint): void;
  abstract job(template: ServedTemplate, part: JobPart): void;
  abstract reconnect(value: Reconnect): void;
  abstract receipts(id: AnswerId, offer: ReceiptsOffer): void;
  abstract receipt(message: ReceiptMessage): void;
}

export class V1Conversation extends Conversation {
  #splitter: LineSplitter | null = null;
  #out = '';
  #wide = false;

  override receive(chunk: Bytes): void {
    this.#splitter ??= new LineSplitter();
    try {
      this.#splitter.push(chunk, (line) => this.take(decodeRequest(line)));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#tooLong(error);
    }
    // Most chunks end with a line: then nothing is held, and the splitter need not be either.
    if (this.#splitter?.held === 0) this.#splitter = null;
    this.settle();
  }

  override receiveMessage(message: Bytes): void {
    this.take(decodeRequest(message.at(-1) === 10 ? message.subarray(0, -1) : message));
    this.flush();
  }

  #tooLong(error: ProtocolError): void {
    this.refuse(null, errorReply(-32700, error.message));
    this.violation('a line was too long');
  }

  protected override handle(request: Request | Invalid): void {
    const { session } = this;
    if (request.kind === 'invalid') {
      session.refuse(request.id, request.code, request.reason);
      return;
    }
    switch (request.method) {
      case 'mining.submit': {
        session.submit(request.id, request.params.jobId, request.params.nonce);
        return;
      }
      case 'mining.subscribe': {
        session.subscribe(request.id, request.params);
        return;
      }
      case 'mining.authorize': {
        session.authorize(request.id, request.params);
        return;
      }
      case 'mining.stats': {
        session.stats(request.id);
        return;
      }
      case 'mining.ping': {
        session.ping(request.id, 0n);
        return;
      }
      case 'mining.receipts': {
        session.receipts(request.id);
        return;
      }
    }
  }

  #say(text: string): void {
    if (this.peer.framed) {
      this.peer.write(text, true);
      return;
    }
    this.#out += `${text}\n`;
    this.touch();
  }

  /** Only text that miners chose can hold more than ASCII: ids, and reasons that repeat what was sent. */
  #sayWide(text: string): void {
    this.#wide = true;
    this.#say(text);
  }

  override flush(): void {
    this.isTouched = false;
    if (this.#out === '') return;
    const [text, wide] = [this.#out, this.#wide];
    this.#out = '';
    this.#wide = false;
    this.peer.write(text, wide);
  }

  override subscribed(id: AnswerId, result: Subscribed): void {
    this.#sayWide(encodeResult(id as RequestId, { method: 'mining.subscribe', result }));
  }

  override authorized(id: AnswerId, result: Authorized): void {
    this.#sayWide(encodeResult(id as RequestId, { method: 'mining.authorize', result }));
  }

  override refuse(id: AnswerId, error: ErrorReply): void {
    this.#sayWide(encodeError(id, error));
  }

  override accepted(id: AnswerId, work: bigint, blockId: Bytes | null): void {
    if (typeof id !== 'number') this.#wide = true;
    if (blockId === null) this.#say(encodeAccepted(id as RequestId, work));
    else this.#say(encodeResult(id as RequestId, { method: 'mining.submit', result: { work, blockId } }));
  }

  override rejected(id: AnswerId, error: ErrorReply): void {
    this.#sayWide(encodeError(id, error));
  }

  override stats(id: AnswerId, result: WorkerStats): void {
    this.#sayWide(encodeResult(id as RequestId, { method: 'mining.stats', result }));
  }

  override pong(id: AnswerId): void {
    this.#sayWide(encodeResult(id as RequestId, { method: 'mining.ping' }));
  }

  override job(template: ServedTemplate, part: JobPart): void {
    const job = template.notify.fill(part);
    if (this.#out === '') {
      this.peer.write(job, false);
      // The system took all of it, or the peer still holds it.
      if (this.peer.queued > 0) template.notify.keep();
      return;
    }
    const said = Buffer.from(this.#out, this.#wide ? 'utf8' : 'latin1');
    this.#out = '';
    this.#wide = false;
    this.isTouched = false;
    this.peer.write(concat(said, job), false);
  }

  override reconnect(params: Reconnect): void {
    this.#say(encodeNotification({ method: 'mining.reconnect', params }));
  }

  override receipts(id: AnswerId, result: ReceiptsOffer): void {
    this.#sayWide(encodeResult(id as RequestId, { method: 'mining.receipts', result }));
  }

  override receipt(message: ReceiptMessage): void {
    this.#say(message.line());
  }
}

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
    this.refuse(null, errorReply(-32700, error.message));
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
        if (frame.sequence !== this.#lastSequence + 1) {
          this.refuse(null, errorReply(-32600, `the sequence goes on with ${this.#lastSequence + 1}`));
          this.violation('a sequence number was left out or repeated');
          return;
        }
        this.#lastSequence = frame.sequence;
        {
          session.submit(frame.sequence, frame.submit.jobId, frame.submit.nonce);
          return;
        }
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
        return;
    }
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
    this.#say({ type: 'accepted', through: this.#through, count: this.#count, work: this.session.work });
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

  /** v2 has no stats request. */
  override stats(): void {}

  override pong(_id: AnswerId, value: bigint): void {
    this.#say({ type: 'pong', value });
  }

  override job(template: ServedTemplate, part: JobPart): void {
    const job = template.frame.fill(part);
    if (this.#out.length > 0) {
      // With what was said before it, in one write.
      this.#out.push(job.slice());
      this.flush();
      return;
    }
    this.peer.write(job, false);
    // The system took all of it, or the peer still holds it.
    if (this.peer.queued > 0) template.frame.keep();
  }

  override reconnect(reconnect: Reconnect): void {
    this.#say({ type: 'reconnect', reconnect });
  }

  override receipts(_id: AnswerId, offer: ReceiptsOffer): void {
    this.#say({ type: 'receiptsOffer', offer });
  }

  override receipt(message: ReceiptMessage): void {
    for (const frame of message.frames()) this.#write(frame);
  }
}
