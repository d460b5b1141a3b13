/** Lists as files for a spreadsheet (RFC 4180), read from the API page by page. */
import { read } from './client.ts';

export type CsvColumn<T> = readonly [title: string, value: (row: T) => string | number | null];

/** Spreadsheets take text that begins so for a formula: names that others chose must stay text. */
const FORMULA = /^[=+@\t\r]|^-(?!\d+(\.\d+)?$)/;

const cellOf = (value: string | number | null): string => {
  const text = value === null ? '' : String(value);
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
};

export const csvOf = <T>(columns: readonly CsvColumn<T>[], rows: readonly T[]): string =>
  [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, value]) => value(row)))]
    .map((cells) => `${cells.map(cellOf).join(',')}\r\n`)
    .join('');

/** In UTC and sortable, as programs read it. */
export const csvTime = (millis: number | null): string | null =>
  millis === null ? null : new Date(millis).toISOString();

/** As many as one file has; the pool gives at most 200 in an answer. */
export const MOST_CSV_ROWS = 5_000;

export async function readRows<T, D extends { readonly next_cursor?: string | undefined }>(
  pathOf: (cursor: string | undefined) => string,
  rowsOf: (document: D) => readonly T[],
): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  do {
    const document = await read<D>(pathOf(cursor));
    rows.push(...rowsOf(document));
    cursor = document.next_cursor;
  } while (cursor !== undefined && rows.length < MOST_CSV_ROWS);
  return rows.slice(0, MOST_CSV_ROWS);
}
