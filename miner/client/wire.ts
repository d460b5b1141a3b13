/**
 * Messages of a session, independent of the wire form: svc-mining-v1 and -v2 differ mainly in how shares are answered,
 * so one session machine serves both. wire-v1.ts and wire-v2.ts translate.
 */

import type { Receipt } from '../../protocol/books/receipt.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { ErrorReply } from '../../protocol/stratum/errors.ts';
import type { FarmJob, FarmOffer, FarmSubmit, Rig } from '../../protocol/stratum/farm.ts';
import type {
  Authorize,
  Authorized,
  Job,
  Reconnect,
  Submit,
  Subscribe,
  Subscribed,
} from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';

export type ToServer =
  | { readonly kind: 'subscribe'; readonly subscribe: Subscribe }
  | { readonly kind: 'authorize'; readonly authorize: Authorize }
  | { readonly kind: 'submit'; readonly sequence: number; readonly submit: Submit }
  | { readonly kind: 'ping'; readonly token: number }
  | { readonly kind: 'pong'; readonly token: bigint }
  | { readonly kind: 'receipts' }
  /** Farms (S70 to S75): v2 only. */
  | { readonly kind: 'farm'; readonly rigs: number }
  | { readonly kind: 'rig'; readonly rig: Rig }
  | { readonly kind: 'farmSubmit'; readonly sequence: number; readonly submit: FarmSubmit };

export type FromServer =
  | { readonly kind: 'subscribed'; readonly subscribed: Subscribed }
  | { readonly kind: 'authorized'; readonly authorized: Authorized }
  | { readonly kind: 'job'; readonly job: Job }
  /** v1: one answer to one share. */
  | { readonly kind: 'accepted'; readonly sequence: number; readonly work: bigint; readonly blockId: Bytes | null }
  /** v2: all shares through `through` are judged; those not named as rejected before are accepted. */
  | { readonly kind: 'acknowledged'; readonly through: number; readonly count: number; readonly work: bigint }
  | { readonly kind: 'rejected'; readonly sequence: number; readonly error: ErrorReply }
  | { readonly kind: 'block'; readonly sequence: number; readonly blockId: Bytes }
  /** Any other request was refused; v2 does not say which. */
  | { readonly kind: 'refused'; readonly error: ErrorReply }
  | { readonly kind: 'pong'; readonly token: number }
  | { readonly kind: 'ping'; readonly token: bigint }
  | { readonly kind: 'reconnect'; readonly reconnect: Reconnect }
  /** The server's answer to the request for receipts; null if it gives none. */
  | { readonly kind: 'receipts'; readonly offer: ReceiptsOffer }
  /** v2: what the receipts after it have in common. It says nothing alone. */
  | { readonly kind: 'receiptHead' }
  | { readonly kind: 'receipt'; readonly receipt: Receipt }
  | { readonly kind: 'farmOffer'; readonly offer: FarmOffer }
  | { readonly kind: 'farmJob'; readonly job: FarmJob };

/** One connection's translation. Both directions throw a ProtocolError for messages that cannot be encoded or decoded. */
export interface Wire {
  /** Bytes to be sent before anything else. */
  readonly opening: Bytes | undefined;
  encode(message: ToServer): Bytes | string;
  /** Takes received bytes and returns the complete messages; a partial one is kept. */
  receive(data: Bytes | string, take: (message: FromServer) => void): void;
}
