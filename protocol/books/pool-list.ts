/**
 * Reads the whole credit list of a slice from the pages of a pool's API. Whatever the pool answers, time and memory are
 * bounded.
 */
import { ProtocolError } from '../errors.ts';
import type { PoolList, PoolListPage } from './pool-proof.ts';

type Row = { readonly address: string };
type Page = { readonly next_cursor?: unknown } & Readonly<Record<string, unknown>>;

const PAGE_ROWS = 200;
/** Rows of a list, and of all slices of its window, that are kept. */
const MAX_ROWS = 5_000_000;
const MAX_PARTS = 100_000;
const MAX_CURSOR = 256;
/** An address, and an amount or a sum of work. */
const MAX_TEXT = 128;

function insist(holds: boolean, what: string): asserts holds {
  if (!holds) throw new ProtocolError('out_of_range', `the pool's ${what} have no such form`);
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_TEXT;

/** Reads pages to the end: `rows` of each, with an address and the field `value`, and the other fields of the first. */
async function readPages<T extends Row>(
  read: (path: string) => Promise<unknown>,
  path: string,
  {
    rows,
    value,
    most,
    limit,
  }: { readonly rows: string; readonly value: string; readonly most: number; readonly limit: number },
): Promise<{ readonly first: Page; readonly all: T[] }> {
  const all: T[] = [];
  let first: Page | undefined;
  for (let query = `?limit=${limit}`; ; ) {
    const page = (await read(`${path}${query}`)) as Page;
    insist(typeof page === 'object' && page !== null, rows);
    first ??= page;
    const list = page[rows];
    insist(Array.isArray(list) && list.length <= limit && all.length + list.length <= most, rows);
    for (const row of list as Readonly<Record<string, unknown>>[]) {
      insist(isText(row?.address) && isText(row[value]), rows);
      all.push({ address: row.address, [value]: row[value] } as unknown as T);
    }
    const cursor = page.next_cursor;
    if (cursor === undefined) return { first, all };
    // A page that names a next one must be full: otherwise a pool could make the list endless.
    insist(typeof cursor === 'string' && cursor.length <= MAX_CURSOR && list.length === limit, rows);
    query = `?limit=${limit}&cursor=${encodeURIComponent(cursor)}`;
  }
}

/**
 * `read` fetches a path below the API's prefix. Whether the list is right is not checked here: checkPoolList does that.
 * Throws a ProtocolError for a malformed answer.
 */
export async function readPoolList(
  service: PoolList['service'],
  slice: number,
  read: (path: string) => Promise<unknown>,
  limit = PAGE_ROWS,
): Promise<PoolList> {
  const path = `/proofs/${service}/${slice}/list`;
  const { first, all: credits } = await readPages<PoolList['credits'][number]>(read, path, {
    rows: 'credits',
    value: 'amount',
    most: MAX_ROWS,
    limit,
  });
  const { next_cursor: _, ...head } = first as unknown as PoolListPage;
  insist(Array.isArray(head.window) && head.window.length <= MAX_PARTS && Array.isArray(head.blocks), 'list heads');
  const window: PoolList['window'][number][] = [];
  let left = MAX_ROWS;
  for (const part of head.window) {
    insist(Number.isSafeInteger(part?.slice) && part.slice >= 0, 'list heads');
    const { all: leaves } = await readPages<PoolList['window'][number]['leaves'][number]>(
      read,
      `/slices/${service}/${part.slice}/leaves`,
      { rows: 'leaves', value: 'work', most: left, limit },
    );
    left -= leaves.length;
    window.push({ ...part, leaves });
  }
  return { ...head, window, credits };
}
