/** A conversation in lines of JSON (docs/protocol/stratum.md, v1). */
import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { CODE, type ErrorReply, errorReply } from '../../protocol/stratum/errors.ts';
import type { JobPart } from '../../protocol/stratum/job-template.ts';
import { LineSplitter } from '../../protocol/stratum/line.ts';
import type { Authorized, Reconnect, Subscribed } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import {
  encodeAccepted,
  encodeAuthorized,
  encodeError,
  encodeNotification,
  encodeResult,
  encodeSubscribed,
} from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, type Invalid, type Request, type RequestId } from '../../protocol/stratum/v1-request.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { AnswerId } from '../session/voice.ts';
import type { ReceiptMessage } from '../shares/receipts.ts';
import { Conversation, type Peer } from './conversation.ts';

/**
 * Text and bytes in one write, for logins: the answers and the first job. They are joined in a reused buffer; a new
 * array for each login would cost more than the write itself.
 */
const ROOM_BYTES = 2_048;
const MAX_ROOM_BYTES = 16_384;

const NONE = Buffer.allocUnsafeSlow(0);
let room = NONE;

/** `text` may hold more than ASCII when `wide` is set. */
export function sendTogether(peer: Peer, text: string, wide: boolean, bytes: Bytes): void {
  const most = (wide ? 3 : 1) * text.length + bytes.length;
  const into = most <= room.length ? room : Buffer.allocUnsafeSlow(Math.max(most, ROOM_BYTES));
  const length = into.write(text, 0, wide ? 'utf8' : 'latin1');
  into.set(bytes, length);
  peer.write(into.subarray(0, length + bytes.length), false);
  // The buffer can be reused once the system has accepted all of it.
  if (peer.queued > 0) room = NONE;
  else if (into.length <= MAX_ROOM_BYTES) room = into;
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
    // Most chunks end with a line: then nothing is buffered, and the splitter is dropped to save memory.
    if (this.#splitter?.held === 0) this.#splitter = null;
    this.settle();
  }

  override receiveMessage(message: Bytes): void {
    this.take(decodeRequest(message.at(-1) === 10 ? message.subarray(0, -1) : message));
    this.flush();
  }

  #tooLong(error: ProtocolError): void {
    this.refuse(null, errorReply(CODE.parse_error, error.message));
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
        const { id } = request;
        session.stats(id, (result) => this.#sayWide(encodeResult(id, { method: 'mining.stats', result })));
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
    if (typeof id !== 'number' || result.pool !== null) this.#wide = true;
    this.#say(encodeSubscribed(id as RequestId, result));
  }

  override authorized(id: AnswerId, result: Authorized): void {
    if (typeof id !== 'number') this.#wide = true;
    this.#say(encodeAuthorized(id as RequestId, result));
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

  override pong(id: AnswerId): void {
    this.#sayWide(encodeResult(id as RequestId, { method: 'mining.ping' }));
  }

  override job(template: ServedTemplate, part: JobPart): void {
    const job = template.notify.fill(part);
    if (this.#out === '') {
      this.peer.write(job, false);
      // The buffer can be reused once the system has accepted all of it.
      if (this.peer.queued > 0) template.notify.keep();
      return;
    }
    const [text, wide] = [this.#out, this.#wide];
    this.#out = '';
    this.#wide = false;
    this.isTouched = false;
    sendTogether(this.peer, text, wide, job);
  }

  /** Only v2 has farms (S70): nothing in v1 asks for one. */
  override farmJob(): void {}
  override farmOffer(): void {}

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
