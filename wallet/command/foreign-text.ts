/**
 * Shows text written by others (labels, payloads, chats, operations) so that it cannot be mistaken for other text or
 * for the program's own output.
 */
import { UNSEEN } from '../../runtime/log/visible.ts';

/** In one line, with a mark in place of unprintable characters. */
export const visible = (value: unknown): string => String(value).replace(UNSEEN, '?');

/** A terminal wraps at its last column, and wrapped text could look like a separate line. */
export const USUAL_COLUMNS = 80;
/** Minimum width: with less, no text would fit beside the marks. */
const LEAST_COLUMNS = 24;
const MOST_TEXT = 60;
const LEAST_TEXT = 8;
/** Outside of ASCII many characters are two columns wide. */
const columnsOf = (character: string): number => (character <= '\x7e' ? 1 : 2);

function cut(text: string, columns: number): string[] {
  const rows: string[] = [];
  let [row, used] = ['', 0];
  for (const character of visible(text)) {
    const width = columnsOf(character);
    if (used + width > columns) {
      rows.push(row);
      [row, used] = ['', 0];
    }
    row += character;
    used += width;
  }
  return [...rows, row];
}

/**
 * The prefix begins every row, with blanks in place of the head after the first. On a terminal that is too narrow for
 * both, the head has a separate row. After `most` rows, one row says how much is left out.
 */
export function foreignRows(
  prefix: string,
  text: string,
  { head = '', most = Number.POSITIVE_INFINITY, columns = USUAL_COLUMNS } = {},
): string[] {
  const width = Math.min(USUAL_COLUMNS, Math.max(LEAST_COLUMNS, columns)) - 1 - prefix.length;
  const isBeside = width - head.length >= LEAST_TEXT;
  const rows = cut(text, Math.min(MOST_TEXT, isBeside ? width - head.length : width));
  const shown = rows.slice(0, most);
  const left = new TextEncoder().encode(rows.slice(most).join('')).length;
  const blanks = isBeside ? ' '.repeat(head.length) : '';
  return [
    ...(isBeside ? [] : [head.trimEnd()]),
    ...shown.map((row, i) => `${i === 0 && isBeside ? head : blanks}${prefix}${row}`),
    ...(left > 0 ? [`${blanks}... ${left} more bytes, see --full`] : []),
  ];
}

/** In one row: of a longer text the beginning. */
export function shortened(text: string): string {
  const [row = '', ...more] = cut(text, MOST_TEXT);
  return more.length === 0 ? row : `${row}...`;
}
