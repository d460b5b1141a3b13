/**
 * Slice records that the public audit has read, in the form of the pool's pages. Lists are checked against these
 * audited records: a pool cannot show one set of records to the audit and another, or none, for its lists. Only records
 * newer than all of these are fetched from the pool.
 */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import type { BooksService } from '../../protocol/books/books-slice.ts';
import type { PublishedRecord } from './public-rows.ts';

const PAGE = /^slices\/(pplns|solo)\?limit=(\d{1,3})&cursor=(\d{1,15})-0$/;

/** Undefined if the path is not one of such a page. */
export async function pageOfKnown(
  path: string,
  known: ReadonlyMap<BooksService, readonly PublishedRecord[]>,
  pool: BooksSources['pool'],
): Promise<unknown> {
  const [, service, limit, cursor] = PAGE.exec(path) ?? [];
  const own = known.get(service as BooksService);
  const newest = own?.at(-1)?.slice;
  if (own === undefined || newest === undefined) return undefined;
  const before = Number(cursor);
  const rows: unknown[] = before > newest + 1 ? await newerOf(path, newest, pool) : [];
  const end = placeOf(own, before);
  const from = Math.max(0, end - (Number(limit) - rows.length));
  const next = own[from]?.slice;
  rows.push(...own.slice(from, end).reverse());
  return { slices: rows.slice(0, Number(limit)), ...(from > 0 ? { next_cursor: `${next}-0` } : {}) };
}

async function newerOf(path: string, newest: number, pool: BooksSources['pool']): Promise<unknown[]> {
  const { slices } = (await pool(path)) as { slices?: { slice?: unknown }[] };
  return Array.isArray(slices) ? slices.filter((each) => Number(each?.slice) > newest) : [];
}

/** How many records are of slices before this one. They are ascending; if not, that is a separate finding. */
function placeOf(records: readonly PublishedRecord[], slice: number): number {
  let [low, high] = [0, records.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((records[middle] as PublishedRecord).slice < slice) low = middle + 1;
    else high = middle;
  }
  return low;
}
