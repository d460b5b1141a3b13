/** Pages by keyset: a cursor names the last row of a page, so a page costs the same however deep it lies. */
import { ApiRefusal } from './api-error.ts';

export type Page = { readonly cursor: string | undefined; readonly limit: number };

export const PAGE_LIMIT = { default: 50, max: 200 } as const;

/** A cursor is `microseconds-key`; the key is hex, a uuid or a number. */
export function readCursor(cursor: string | undefined): { micros: string; key: string } | undefined {
  if (cursor === undefined) return undefined;
  const match = /^(\d{1,17})-([0-9a-f-]{1,96})$/.exec(cursor);
  if (match === null) throw new ApiRefusal('bad_request', 'cursor is not one that this API gave');
  return { micros: match[1] as string, key: match[2] as string };
}

/** The rows of a page, and where the next one begins, if there is one. */
export function pageOf<T>(
  rows: readonly T[],
  limit: number,
  cursorOf: (row: T) => string,
): { rows: readonly T[]; more: { next_cursor?: string } } {
  if (rows.length <= limit) return { rows, more: {} };
  const page = rows.slice(0, limit);
  return { rows: page, more: { next_cursor: cursorOf(page.at(-1) as T) } };
}
