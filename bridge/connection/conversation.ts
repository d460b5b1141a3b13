/**
 * One connection: splits its input into requests, hands them to the session, and forwards the session's calls to the
 * desk of its listener. The encoding of requests and answers is in v1-conversation.ts and v2-conversation.ts. There are
 * no sockets here: bytes are written to a Peer.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { ErrorReply, RefusalCode } from '../../protocol/stratum/errors.ts';
import type { FarmOffer } from '../../protocol/stratum/farm.ts';
import type { JobPart } from '../../protocol/stratum/job-template.ts';
import type { Authorized, Reconnect, Subscribed } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import { clientKey } from '../../runtime/clients/client-address.ts';
import type { FairShare } from '../../runtime/clients/fair-share.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { StratumService } from '../service.ts';
import type { Fault } from '../session/ban-score.ts';
import type { PendingShare } from '../session/pending-share.ts';
import { Session } from '../session/session.ts';
import type { SessionDesk, SessionHost } from '../session/surroundings.ts';
import type { AnswerId, FarmJobPart } from '../session/voice.ts';
import type { ReceiptMessage } from '../shares/receipts.ts';
import type { Balance, Member } from '../threads/hub.ts';

/** Where a conversation's bytes go. `framed` peers (WebSockets) take one message at a time, others a stream. */
export interface Peer {
  readonly framed: boolean;
  /** Bytes written and not yet taken by the system. */
  readonly queued: number;
  /** `text` may hold more than ASCII when `wide` is set. Once `queued` is 0, `data` is not needed any more. */
  write(data: Bytes | string, wide: boolean): void;
  /** Nothing more is read, from the next chunk on, until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes once everything written has been sent. */
  end(): void;
  destroy(): void;
}

/** The desk, as its conversations use it. */
export interface ConversationDesk extends SessionDesk {
  resume(conversation: Conversation, sessionId: string): void;
  own(conversation: Conversation, member: Member): void;
  operatorBanLeft(address: string, account: Bytes): number;
  joined(conversation: Conversation, member: Member): void;
  /** What the listener can verify, by the addresses of connections. */
  readonly verifications: FairShare;
  check(share: PendingShare): void;
  isExempt(address: string): boolean;
  exceeds(conversation: Conversation): void;
  faultOfAddress(conversation: Conversation, fault: Fault): void;
  works(conversation: Conversation): void;
  balance(conversation: Conversation, member: Member, tell: (balance: Balance | null) => void): void;
  admitRigs(conversation: Conversation, asked: number): number;
  /** A share of a farm was accepted. */
  farmWorked(conversation: Conversation): void;
  rigJoined(conversation: Conversation, member: Member): void;
  rigsLeft(members: readonly Member[]): void;
  refusedShare(member: Pick<Member, 'service' | 'account' | 'worker'>, code: RefusalCode, isOfWorker: boolean): void;
  note(entry: () => Bytes | null): void;
  wantsReceipts(conversation: Conversation): void;
  defect(conversation: Conversation, error: unknown): void;
  /** The conversation has bytes to flush at the end of a batch of verdicts. */
  touched(conversation: Conversation): void;
  /** An acknowledgement is due within 250 ms. */
  acknowledgeSoon(conversation: Conversation): void;
  /** The session sends nothing more; `reason` is for figures and the log. */
  ended(conversation: Conversation, reason: string): void;
}

export abstract class Conversation implements SessionHost {
  readonly session: Session;
  readonly desk: ConversationDesk;
  readonly peer: Peer;
  readonly address: string;
  /** The key of its address, for limits and counts. */
  readonly client: string;
  readonly isExempt: boolean;
  readonly sinceMillis: number;
  /** Requests that arrived while an earlier one was waiting for the main thread. */
  #held: unknown[] | null = null;
  isEnding = false;
  isTouched = false;
  /** A share of it was accepted. */
  isWorking = false;
  /** Since when bytes have been waiting for the peer; 0 when none are. */
  stalledSinceMillis = 0;
  /** Since when there is no work for it though others have some; 0 when there is. */
  joblessSinceMillis = 0;

  constructor(service: StratumService, desk: ConversationDesk, peer: Peer, address: string) {
    this.desk = desk;
    this.peer = peer;
    this.address = address;
    this.client = clientKey(address);
    this.isExempt = desk.isExempt(address);
    this.sinceMillis = desk.now();
    this.session = new Session(service, desk, this);
  }

  /** A chunk of a stream. */
  abstract receive(chunk: Bytes): void;
  /** One whole message, as a WebSocket brings it. */
  abstract receiveMessage(message: Bytes): void;
  /** Writes to the peer everything said since the last flush. */
  abstract flush(): void;
  protected abstract handle(request: unknown): void;

  /** After the session was busy: handles the requests held back, until it is busy again. */
  proceed(): void {
    while (this.#held !== null && !this.session.busy && !this.isEnding) {
      const next = this.#held.shift();
      if (this.#held.length === 0) this.#held = null;
      this.handle(next);
    }
    this.flush();
  }

  /** After a chunk: verdicts that are about to come and the answers so far go out in one write. */
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

  /** A protocol violation: the connection ends. */
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

  // --- what the session asks for --------------------------------------------------------------------------------------

  resume(sessionId: string): void {
    this.desk.resume(this, sessionId);
  }

  own(member: Member): void {
    this.desk.own(this, member);
  }

  banLeft(account: Bytes): number {
    return this.desk.operatorBanLeft(this.address, account);
  }

  joined(member: Member): void {
    this.desk.joined(this, member);
  }

  mayVerify(nowMillis: number): boolean {
    return this.desk.verifications.has(this.client, nowMillis);
  }

  verifies(nowMillis: number): void {
    this.desk.verifications.take(this.client, nowMillis);
  }

  check(share: PendingShare): void {
    this.desk.check(share);
  }

  exceeds(): void {
    this.desk.exceeds(this);
  }

  faultOfAddress(fault: Fault): void {
    this.desk.faultOfAddress(this, fault);
  }

  works(): void {
    if (!this.isWorking) this.desk.works(this);
    if (this.session.mining?.farm != null) this.desk.farmWorked(this);
  }

  balance(member: Member, tell: (balance: Balance | null) => void): void {
    this.desk.balance(this, member, tell);
  }

  admitRigs(asked: number): number {
    return this.desk.admitRigs(this, asked);
  }

  rigJoined(member: Member): void {
    this.desk.rigJoined(this, member);
  }

  rigsLeft(members: readonly Member[]): void {
    this.desk.rigsLeft(members);
  }

  refusedShare(member: Pick<Member, 'service' | 'account' | 'worker'>, code: RefusalCode, isOfWorker: boolean): void {
    this.desk.refusedShare(member, code, isOfWorker);
  }

  note(entry: () => Bytes | null): void {
    this.desk.note(entry);
  }

  wantsReceipts(): void {
    this.desk.wantsReceipts(this);
  }

  defect(error: unknown): void {
    this.desk.defect(this, error);
  }

  // --- what it says, in bytes -------------------------------------------------------------------------------------------

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
  abstract pong(id: AnswerId, value: bigint): void;
  abstract job(template: ServedTemplate, part: JobPart): void;
  abstract farmJob(template: ServedTemplate, part: FarmJobPart): void;
  abstract farmOffer(offer: FarmOffer): void;
  abstract reconnect(value: Reconnect): void;
  abstract receipts(id: AnswerId, offer: ReceiptsOffer): void;
  abstract receipt(message: ReceiptMessage, isFirst: boolean): void;
}
