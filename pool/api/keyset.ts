/** Pages by keyset: a cursor names the last row of a page, so a page costs the same however deep it lies. */
import { ApiRefusal } from './api-error.ts';

export type Page = { readonly cursor: string | undefined; readonly limit: number };

export const PAGE_LIMIT = { default: 50, max: 200 } as const;

const MAX_INTEGER = 2_147_483_647;
/** Until the year 5138, which the database can still represent. */
const MICROS = /^\d{1,17}$/;

const refused = () => new ApiRefusal('bad_request', 'cursor is not one that this API returned');

/** A cursor `microseconds-key` of rows in the order of their time; the key must match the form of this list's keys. */
export function readTimeCursor(cursor: string | undefined, key: RegExp): { micros: string; key: string } | undefined {
  if (cursor === undefined) return undefined;
  const at = cursor.indexOf('-');
  const parts = { micros: cursor.slice(0, Math.max(0, at)), key: cursor.slice(at + 1) };
  if (!MICROS.test(parts.micros) || !key.test(parts.key)) throw refused();
  return parts;
}

/** A cursor `number-0` of rows in the order of their number. */
export function readNumberCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const match = /^(0|[1-9]\d{0,9})-0$/.exec(cursor);
  const number = match === null ? Number.NaN : Number(match[1]);
  if (!(number <= MAX_INTEGER)) throw refused();
  return number;
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
