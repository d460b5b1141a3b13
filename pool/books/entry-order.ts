/**
 * Whether an entry of a journal follows the books' position in it (books rule 11). Only the journal itself can state that
 * it has nothing between: by `after`, and by an empty record, which was answered and is not there any more.
 */
import type { JournalEntry } from '../journal/journal.ts';

export type EntryPlace =
  | { readonly kind: 'repeated' }
  | { readonly kind: 'gap' }
  /** `lost` entries after the position are in no journal; `isLost` says that the entry is the last of them. */
  | { readonly kind: 'next'; readonly lost: number; readonly isLost: boolean };

export function placeOfEntry({ sequence, record, after }: JournalEntry, position: number): EntryPlace {
  if (sequence <= position) return { kind: 'repeated' };
  if (sequence !== position + 1 && (after === undefined || after > position)) return { kind: 'gap' };
  const isLost = record.length === 0;
  return { kind: 'next', lost: sequence - position - (isLost ? 0 : 1), isLost };
}
