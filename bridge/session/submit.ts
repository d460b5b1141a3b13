/**
 * The verdict over a submit before anything is hashed (docs/protocol/stratum.md, S51 to S56): a pure function of what
 * the session and its listener know. The session sends the answer and stores the remaining budgets.
 */
import { CODE, type RefusalCode } from '../../protocol/stratum/errors.ts';
import { type Bucket, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import type { StratumLimits } from '../options.ts';
import type { TemplateLookup } from './job-book.ts';
import type { Terms } from './job-log.ts';
import type { LateCode } from './pending-share.ts';

/** What one connection may send; null is a full bucket that was never used. */
export type SubmitBudgets = {
  readonly submits: Bucket | null;
  /** The few submits that are hashed regardless of the load by others: one of them may be a block. */
  readonly owed: Bucket | null;
  /** Late shares are hashed only because one may be a block. */
  readonly late: Bucket | null;
};

export type SubmitFacts<T> = {
  readonly nowMillis: number;
  readonly limits: Pick<StratumLimits, 'submits' | 'owedSubmits' | 'lateSubmits'>;
  readonly budgets: SubmitBudgets;
  /** Whether the sender's address may have another one verified: a fair share of what the listener can verify. */
  readonly hasRoom: boolean;
  readonly isReady: boolean;
  /** The terms of the job, if it was sent to this session. */
  readonly terms: Terms | undefined;
  readonly found: TemplateLookup<T>;
  /** Decides which of the draws of a cut the session mines on. */
  readonly draw: number;
  /** What is wrong with it: the prefix of its nonce, or the generation or rig of a farm. */
  readonly wrong: RefusalCode | null;
  /** Whether the nonce was judged on this header before, or no more can be remembered. */
  readonly known: 'fresh' | 'again' | 'full';
};

export type SubmitVerdict<T> =
  | { readonly kind: 'excess' | 'unknown_job' | 'again' | 'full'; readonly budgets: SubmitBudgets }
  | { readonly kind: 'wrong'; readonly code: RefusalCode; readonly budgets: SubmitBudgets }
  | { readonly kind: 'late'; readonly code: LateCode; readonly budgets: SubmitBudgets }
  | {
      readonly kind: 'busy';
      readonly code: (typeof CODE)['too_many_requests' | 'not_ready'];
      readonly budgets: SubmitBudgets;
    }
  | {
      readonly kind: 'hash';
      readonly template: T;
      readonly terms: Terms;
      /** Set when the share earns nothing and is hashed only because it may be a block. */
      readonly refusal: LateCode | null;
      readonly isOwed: boolean;
      readonly budgets: SubmitBudgets;
    };

export function judgeSubmit<T extends { readonly draw: number; readonly draws: number }>(
  facts: SubmitFacts<T>,
): SubmitVerdict<T> {
  const { nowMillis, limits, budgets: before, terms, found } = facts;
  const submits = take(before.submits ?? fullBucket(limits.submits, nowMillis), limits.submits, nowMillis);
  if (submits === undefined) return { kind: 'excess', budgets: before };
  const budgets: SubmitBudgets = { ...before, submits };
  if (terms === undefined || found.state === 'unknown') return { kind: 'unknown_job', budgets };
  const { template } = found;
  if (facts.draw % template.draws !== template.draw) return { kind: 'unknown_job', budgets };
  if (facts.wrong !== null) return { kind: 'wrong', code: facts.wrong, budgets };
  const refusal = found.state === 'expired' ? CODE.unknown_job : facts.isReady ? null : CODE.not_ready;
  if (refusal !== null && terms.isSpent) return { kind: 'late', code: refusal, budgets };
  if (facts.known !== 'fresh') return { kind: facts.known, budgets };

  const lateRate = limits.lateSubmits;
  const late =
    refusal === null ? before.late : take(before.late ?? fullBucket(lateRate, nowMillis), lateRate, nowMillis);
  if (late === undefined) return { kind: 'late', code: refusal as LateCode, budgets };
  const owedRate = limits.owedSubmits;
  const owed = take(before.owed ?? fullBucket(owedRate, nowMillis), owedRate, nowMillis);
  if (owed === undefined && !facts.hasRoom) {
    const code = refusal === CODE.not_ready ? CODE.not_ready : CODE.too_many_requests;
    return { kind: 'busy', code, budgets };
  }
  return {
    kind: 'hash',
    template,
    terms,
    refusal,
    isOwed: owed !== undefined,
    budgets: { submits, owed: owed ?? before.owed, late },
  };
}
