/**
 * How journal entries reach the accountant (docs/pool.md, many instances). Positions are stored in the books: a source
 * starts from the position in the database, and the books refuse an entry that does not directly follow it (books rule
 * 11). So entries lost by a source, Redis or a restored database are requested again, and none is skipped.
 */
import type { JournalEntry } from '../journal/journal.ts';

export type TakenEntries = {
  /** In order per boot; empty when nothing came in time. */
  readonly entries: readonly JournalEntry[];
  /** To be called once the books hold the entries durably. */
  committed(): Promise<void>;
};

/** The accountant's end of the feed. One batch is processed at a time. */
export interface EntrySource {
  /**
   * Called when an instance becomes the accountant, and after a failed transaction: entries start at the database's current
   * position, whatever was handed out before.
   */
  begin(): Promise<void>;
  take(maxEntries: number, waitMillis: number): Promise<TakenEntries>;
  /** Whether the books have all entries that the reachable journals had when `begin` was called. */
  isCaughtUp(): Promise<boolean>;
  /** Whether the journal of a boot may hold entries that the books do not have yet. */
  mayTell(bootId: string): Promise<boolean>;
  close(): Promise<void>;
}

export const NOTHING: TakenEntries = { entries: [], committed: async () => undefined };

/** The books' position in each boot's journal; -1 for an unknown boot. */
export type Positions = (bootIds: readonly string[]) => Promise<ReadonlyMap<string, number>>;

/** The name of the term that the books are kept under. */
export type Reign = () => Promise<string>;
