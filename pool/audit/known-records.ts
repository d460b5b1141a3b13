/**
 * Slice records that the public audit has read, in the form of the pool's pages. Lists are judged by the very records that were audited: a pool cannot show one set of records to be
 * audited and another, or none, to judge its lists by. Only what is newer than all that was read comes from the pool.
 */
import type { BooksSources } from '../../protocol/books-evidence.ts';
import type { BooksService } from '../../protocol/books-slice.ts';
import type { PublishedRecord } from './public-rows.ts';

const PAGE = /^slices\/(pplns|solo)\?limit=(\d{1,3})&cursor=(\d{1,15})-0$/;

/** Undefined for a path that is none of such a page. */
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

/** How many records are of slices before this one. They are ascending; where they are not, that is a finding of its own. */
function placeOf(records: readonly PublishedRecord[], slice: number): number {
  let [low, high] = [0, records.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((records[middle] as PublishedRecord).slice < slice) low = middle + 1;
    else high = middle;
  }
  return low;
}
