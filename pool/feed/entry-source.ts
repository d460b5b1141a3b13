/**
 * How journal entries reach the accountant (docs/pool.md, many instances). Positions belong to the books: a source starts
 * from what the database says, and the books refuse an entry that does not join their position (books rule 11). So whatever
 * a source, Redis or a restored database forgot is asked for again, and nothing is passed over.
 */
import type { JournalEntry } from '../journal.ts';

export type TakenEntries = {
  /** In order per boot; empty when nothing came in time. */
  readonly entries: readonly JournalEntry[];
  /** To be called once the books hold the entries durably. */
  committed(): Promise<void>;
};

/** The accountant's end of the feed. One batch is under way at a time. */
export interface EntrySource {
  /**
   * Called when an instance becomes the accountant, and after a failed transaction: entries start at the database's current
   * position, whatever was handed out before.
   */
  begin(): Promise<void>;
  take(maxEntries: number, waitMillis: number): Promise<TakenEntries>;
  /** Whether the books hold what the journals that can be reached held when `begin` was called. */
  isCaughtUp(): Promise<boolean>;
  /** Whether the journal of a boot may hold entries that the books do not have yet. */
  mayTell(bootId: string): Promise<boolean>;
  close(): Promise<void>;
}

export const NOTHING: TakenEntries = { entries: [], committed: async () => undefined };

/** How far the books have taken each boot's journal; -1 for a boot they do not know. */
export type Positions = (bootIds: readonly string[]) => Promise<ReadonlyMap<string, number>>;

/** The name of the term that the books are kept under. */
export type Reign = () => Promise<string>;
