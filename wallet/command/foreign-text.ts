/** Text that others wrote (labels, payloads, chats, operations), shown so that it passes neither for another text nor for what the program says itself. */

/** Characters that move the cursor, end a line or turn the direction of writing. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu;
/** In one line, with a mark in place of such characters. */
export const visible = (value: unknown): string => String(value).replace(UNSEEN, '?');

/** A terminal has 80 columns or more. Beyond them it begins a new row, and there a text could write a line of its own. */
const TERMINAL_COLUMNS = 80;
const MOST_COLUMNS = 60;
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

/** The prefix begins every row, with blanks in place of the head after the first. Beyond `most` rows there is one that says how much is left out. */
export function foreignRows(
  prefix: string,
  text: string,
  { head = '', most = Number.POSITIVE_INFINITY } = {},
): string[] {
  const columns = Math.min(MOST_COLUMNS, TERMINAL_COLUMNS - 1 - head.length - prefix.length);
  const rows = cut(text, columns);
  const shown = rows.slice(0, most);
  const left = new TextEncoder().encode(rows.slice(most).join('')).length;
  const blanks = ' '.repeat(head.length);
  return [
    ...shown.map((row, i) => `${i === 0 ? head : blanks}${prefix}${row}`),
    ...(left > 0 ? [`${blanks}... ${left} more bytes, see --full`] : []),
  ];
}
