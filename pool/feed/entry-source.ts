/**
 * How journal entries reach the accountant (docs/pool.md, many instances). The books pass over every entry at or below a
 * boot's position, so a source must never hand out a later entry of a boot before an earlier one: each batch says which
 * sequence stands before it, and a batch that does not join the books' position is left for the sender to repeat.
 */
import type { JournalEntry } from '../journal.ts';

export type TakenEntries = {
  /** In order per boot; empty when nothing came in time. */
  readonly entries: readonly JournalEntry[];
  /** To be called once the books hold the entries durably; only then may their sender forget them. */
  committed(): Promise<void>;
};

/** The accountant's end of the feed. One batch is under way at a time. */
export interface EntrySource {
  /** Called when an instance becomes the accountant, and after a failed transaction: what was not committed comes again. */
  begin(): Promise<void>;
  take(maxEntries: number, waitMillis: number): Promise<TakenEntries>;
  close(): Promise<void>;
}

export const NOTHING: TakenEntries = { entries: [], committed: async () => undefined };

/** How far the books have taken each boot's journal; -1 for a boot they do not know. */
export type Positions = (bootIds: readonly string[]) => Promise<ReadonlyMap<string, number>>;
