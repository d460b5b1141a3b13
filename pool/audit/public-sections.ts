/**
 * Parts of the public audit. A missing answer means 'not checked', also for everything that depends on it: a payment
 * that was not read must not look like theft. A malformed answer is a finding.
 */

import { ApiError } from '../../protocol/api/client-calls.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { PoolError } from '../pool-error.ts';
import { type Findings, REMEDIES } from './findings.ts';

/** The results that other parts use. */
export type AuditPart = 'payments' | 'commitments' | 'slices' | 'lists' | 'spends';

/** States that can have honest reasons, but should have ended by now. */
export type Suspicion = {
  readonly name: 'rewards_withheld' | 'books_behind' | 'payouts_unlisted';
  readonly says: string;
};

export class AuditSections {
  readonly notChecked: string[] = [];
  readonly suspicions: Suspicion[] = [];
  readonly #findings: Findings;
  readonly #unread = new Set<AuditPart>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** A pool that never answered ends the audit. */
  async run<T>(what: string, work: () => Promise<T>, otherwise: T, part?: AuditPart): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof PoolError) throw error;
      if (part !== undefined) this.#unread.add(part);
      const { message } = error as Error;
      const isSilence = error instanceof ApiError || error instanceof PoolSilence;
      if (isSilence) this.notChecked.push(`${what}: ${message}`);
      else this.#findings.add(what, 'cannot be audited', message, REMEDIES.failed);
      return otherwise;
    }
  }

  /** Whether all of these parts were read completely; otherwise `what` is reported as not checked. */
  have(what: string, parts: readonly AuditPart[]): boolean {
    const unread = parts.filter((part) => this.#unread.has(part));
    if (unread.length > 0) this.notChecked.push(`${what}: ${unread.join(', ')} could not all be read`);
    return unread.length === 0;
  }
}
