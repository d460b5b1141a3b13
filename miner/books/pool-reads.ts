/**
 * A pool's answers, for the watches over its books. No answer is not a finding; a malformed answer is false. They are
 * different error classes, because `fetch` throws a TypeError for a lost connection, and a malformed document causes
 * one too.
 */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { isWhole } from '../../protocol/books/books-slice.ts';
import type { PublishedTerms, TermsFrom } from '../../protocol/books/books-terms.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { ProtocolError } from '../../protocol/errors.ts';

/** `height`: the newest cut that the books have taken in. A pool may leave it out. */
export type Terms = PublishedTerms & { readonly height?: unknown };

/** Limit on changes of terms: the list is searched for each slice, so its length determines the time. */
const MAX_TERMS = 10_000;
const FIELDS = ['from_slice', 'slice_cuts', 'window_thousandths', 'fee_ppm'] as const;

export const poolReads =
  (pool: BooksSources['pool']): BooksSources['pool'] =>
  async (path) => {
    const answer = await pool(path).catch((error: unknown) => {
      throw error instanceof PoolSilence
        ? error
        : new PoolSilence(error instanceof Error ? error.message : String(error));
    });
    if (path === 'terms' && !isTerms(answer))
      throw new ProtocolError('out_of_range', "the pool's terms have no such form");
    return answer;
  };

function isTerms(answer: unknown): answer is Terms {
  const { address, window_fee_from: from, terms } = (answer ?? {}) as Partial<PublishedTerms>;
  const isFrom = from === undefined || isWhole(from);
  return typeof address === 'string' && isFrom && isAscending(terms?.pplns) && isAscending(terms?.solo);
}

function isAscending(list: readonly TermsFrom[] | undefined): boolean {
  if (!Array.isArray(list) || list.length > MAX_TERMS) return false;
  let before = 0;
  for (const each of list) {
    if (!FIELDS.every((name) => isWhole(each?.[name])) || each.from_slice < before) return false;
    before = each.from_slice;
  }
  return true;
}

/** A malformed document of a pool counts as false. */
export async function judged<T>(judge: () => Promise<T>, malformed: T): Promise<T> {
  try {
    return await judge();
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError) return malformed;
    throw error;
  }
}
