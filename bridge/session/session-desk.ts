/**
 * What a session needs of the listener it lives in, and what passes between the two. `S` is the session's own type: named
 * here, it would make this file and session.ts import each other.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Network } from '../../protocol/network.ts';
import type { RefusalCode } from '../../protocol/stratum/errors.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { StratumLimits } from '../options.ts';
import type { Member } from '../threads/hub.ts';
import type { Fault } from './ban-score.ts';
import type { TemplateShelf } from './job-book.ts';
import type { Terms } from './job-log.ts';
import type { AnswerId } from './voice.ts';

/** A submit that passed the cheap checks and waits for its hash. */
export type PendingShare<S> = {
  readonly session: S;
  readonly id: AnswerId;
  readonly nonce: Bytes;
  readonly template: ServedTemplate;
  readonly terms: Terms;
  /** Set when the share earns nothing (the job has expired, or the server is not ready), but may be a block. */
  readonly refusal: 21 | 31 | null;
  /** One of the few of its connection that are hashed whatever others send. */
  readonly isOwed: boolean;
  readonly atMillis: number;
};

export type ConnectionNumbers = { readonly owner: Bytes; readonly prefix: number; readonly handle: number };

export interface SessionDesk<S> {
  readonly network: Network;
  readonly server: string;
  readonly limits: StratumLimits;
  readonly bootId: Bytes;
  readonly ready: boolean;
  readonly headHeight: number;
  readonly shelf: TemplateShelf<ServedTemplate>;
  now(): number;
  newest(draw: number): ServedTemplate | undefined;
  /** The template that came just before the newest, for the same draw. */
  before(draw: number): ServedTemplate | undefined;
  newNumbers(mark?: number): ConnectionNumbers;
  newSessionId(): string;
  /** Answered by `resumed`. */
  resume(session: S, id: string): void;
  /** Answered by `owned` or `notOwned`. */
  own(session: S, member: Member): void;
  /** The session mines from now on. */
  joined(session: S): void;
  /** Answered by `accepted`, `refused` or `found`. */
  check(share: PendingShare<S>): void;
  /** Whether the overall bound lets one more be hashed. */
  admits(): boolean;
  /** A fault before authorization: it counts against the address. */
  faultOfAddress(session: S, fault: Fault): void;
  /** Answered by `balanced`. */
  balance(session: S, id: AnswerId): void;
  refusedShare(session: S, code: RefusalCode): void;
  /** The session is to be sent its receipts. */
  wantsReceipts(session: S): void;
}
