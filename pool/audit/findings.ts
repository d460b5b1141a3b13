/** What an audit finds, and the sections that it consists of. */
import type { Sql } from '../database/connect.ts';

/** A finding of an audit: where, the value in the books, the computed value, and the remedy. */
export type Finding = {
  readonly what: string;
  readonly books: string;
  readonly computed: string;
  readonly remedy: string;
};

/** One fault can affect every account of every list: findings beyond this number are counted but not kept. */
const MAX_FINDINGS = 10_000;

/** Remedies, by where the difference lies. */
export const REMEDIES = {
  edited: 'A row was changed outside the pool. Stop payouts, and restore the database or the row from a backup.',
  payment:
    'Books and ledger disagree about a payment. Stop payouts and compare with the wallet before anything is sent.',
  block:
    'Books and ledger disagree about a block. Stop payouts; compare with a second node before you correct the books.',
  finder:
    'A block is credited to the pool although its finder was on record: a row was changed outside the pool, or the pool has a fault. Stop payouts, pass the reward on to the finder, and look who can write to the database.',
  shares: 'Raw shares and slices disagree. Compare with the journals of the front ends; restore from a backup.',
  published:
    'The published data is not consistent. Keep this report and ask the operator; do not mine on until it is explained.',
  failed: 'This part could not be read. Fix what the message names and run the audit again.',
} as const;

export class Findings {
  readonly #sql: Sql | undefined;
  #depth = 0;
  readonly list: Finding[] = [];
  count = 0;
  /** Parts that could not be read. */
  failed = 0;
  /** Parts that could not be compared, for a reason that is not a difference. */
  readonly notChecked: string[] = [];
  /** Correct in the books, but to be paid by the operator. */
  readonly owed: string[] = [];

  /** `sql` is the transaction that the sections read in, if they do. */
  constructor(sql?: Sql) {
    this.#sql = sql;
  }

  add(what: string, books: unknown, computed: unknown, remedy: string = REMEDIES.edited): void {
    this.count++;
    if (this.list.length < MAX_FINDINGS)
      this.list.push({ what, books: String(books), computed: String(computed), remedy });
  }

  skip(what: string, why: string): void {
    if (this.notChecked.length < MAX_FINDINGS) this.notChecked.push(`${what}: ${why}`);
  }

  owe(what: string): void {
    if (this.owed.length < MAX_FINDINGS) this.owed.push(what);
  }

  /** Nothing is known of a part that could not be read, so nothing may be compared with it. */
  unread(what: string, why: string): void {
    this.failed++;
    this.add(what, 'cannot be audited', why, REMEDIES.failed);
  }

  compare(what: string, books: unknown, computed: unknown, remedy?: string): void {
    if (String(books) !== String(computed)) this.add(what, books, computed, remedy);
  }

  /**
   * A section that throws is a finding, and the others continue: an edited row must not hide the rest. Its savepoint is
   * always rolled back, which also gives back its locks: the pool makes and drops partitions of the raw shares meanwhile.
   */
  async section<T>(what: string, work: () => Promise<T>, otherwise: T): Promise<T> {
    const savepoint = `section_${++this.#depth}`;
    await this.#sql?.unsafe(`savepoint ${savepoint}`);
    try {
      return await work();
    } catch (error) {
      this.unread(what, (error as Error).message);
      return otherwise;
    } finally {
      this.#depth--;
      await this.#sql?.unsafe(`rollback to savepoint ${savepoint}; release savepoint ${savepoint}`);
    }
  }
}
