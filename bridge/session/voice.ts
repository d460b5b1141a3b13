/**
 * The messages of a session, independent of the wire form. `id` is the request's in v1; in v2 it is a submit's
 * sequence, and null for everything else. connection/conversation.ts puts it into bytes; tests record it.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { ErrorReply } from '../../protocol/stratum/errors.ts';
import type { FarmJob, FarmOffer } from '../../protocol/stratum/farm.ts';
import type { JobPart } from '../../protocol/stratum/job-template.ts';
import type { Authorized, Reconnect, Subscribed } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import type { RequestId } from '../../protocol/stratum/v1-request.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';

/** What differs between farms. */
export type FarmJobPart = Omit<FarmJob, 'header' | 'epoch' | 'shareTarget'> & { readonly shareTarget: Bytes };

export type AnswerId = RequestId | null;

export interface Voice {
  subscribed(id: AnswerId, value: Subscribed): void;
  authorized(id: AnswerId, value: Authorized): void;
  /** An error that answers anything but a submit. */
  refuse(id: AnswerId, error: ErrorReply): void;
  accepted(id: AnswerId, work: bigint, blockId: Bytes | null): void;
  rejected(id: AnswerId, error: ErrorReply): void;
  /** `value` is that of a v2 ping. */
  pong(id: AnswerId, value: bigint): void;
  job(template: ServedTemplate, part: JobPart): void;
  farmJob(template: ServedTemplate, part: FarmJobPart): void;
  farmOffer(offer: FarmOffer): void;
  reconnect(value: Reconnect): void;
  receipts(id: AnswerId, offer: ReceiptsOffer): void;
  /** Closes the connection after everything was sent. */
  end(reason: string): void;
}
