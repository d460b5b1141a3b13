/**
 * A submit that passed the cheap checks and waits for its hash, and the parts of its session that its verdict needs.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { CODE, RefusalCode } from '../../protocol/stratum/errors.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { Member } from '../threads/hub.ts';
import type { Body } from './bodies.ts';
import type { Terms } from './job-log.ts';
import type { AnswerId } from './voice.ts';

/** Why a share earns nothing though it may be a block: its job has expired, or the server is not ready. */
export type LateCode = (typeof CODE)['unknown_job' | 'not_ready'];

export type PendingShare = {
  readonly session: Submitter;
  readonly id: AnswerId;
  readonly nonce: Bytes;
  readonly template: ServedTemplate;
  readonly terms: Terms;
  readonly refusal: LateCode | null;
  /** One of the few per connection that are hashed regardless of the load by others. */
  readonly isOwed: boolean;
  readonly atMillis: number;
  /** The name of the rig that found it, in a farm session. */
  readonly rig: string | null;
};

export interface Submitter {
  /** Who found it. */
  memberOf(share: Pick<PendingShare, 'terms' | 'rig'>): Member;
  /** Whom its blocks pay. */
  readonly payout: Bytes;
  bodyOf(terms: Terms, on: ServedTemplate): Body;
  /** Whether a hit on these terms can be a block; asked once per hit, because a body is good for one block. */
  spend(terms: Terms): boolean;
  /** After a block: a job on a fresh body at once (S53). */
  renew(): void;
  accepted(share: PendingShare, work: bigint, blockId: Bytes | null): void;
  /** `again`: nothing was judged, so the miner may send the nonce once more. */
  refused(share: PendingShare, code: RefusalCode, again: boolean, message?: string): void;
  /** An unexpected error in this session: its connection ends. */
  defect(error: unknown): void;
}
