/** Downloads a list as a file, made in the page. */

import { useState } from 'preact/hooks';
import { apiUrl } from '../data/client.ts';
import { type CsvColumn, csvOf, MOST_CSV_ROWS, readRows } from '../data/csv.ts';
import { count } from '../format.ts';
import { word } from '../words/language.ts';

type CsvParts<T, D> = {
  /** Of the file, without its ending. */
  readonly name: string;
  readonly columns: readonly CsvColumn<T>[];
  readonly pathOf: (cursor: string | undefined) => string;
  readonly rowsOf: (document: D) => readonly T[];
  /** Of the same list for feed readers, below the API. */
  readonly feed?: string;
};

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: `${name}.csv` });
  link.click();
  URL.revokeObjectURL(url);
}

export function CsvButton<T, D extends { readonly next_cursor?: string | undefined }>(parts: CsvParts<T, D>) {
  const [said, setSaid] = useState('');
  const [isBusy, setBusy] = useState(false);
  const load = async () => {
    if (isBusy) return;
    setBusy(true);
    setSaid(word('lazy.loading'));
    try {
      const rows = await readRows<T, D>(parts.pathOf, parts.rowsOf);
      save(parts.name, csvOf(parts.columns, rows));
      setSaid(word(rows.length < MOST_CSV_ROWS ? 'csv.rows' : 'csv.newest_rows', { count: count(rows.length) }));
    } catch (error) {
      setSaid((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <span class="row csv">
      <button
        type="button"
        aria-disabled={isBusy}
        aria-label={word('csv.file', { name: parts.name })}
        onClick={() => void load()}
      >
        CSV
      </button>
      {parts.feed === undefined ? null : (
        <a href={apiUrl(parts.feed).href} title={word('csv.for_readers')}>
          {word('csv.feed')}
        </a>
      )}
      <span class="note" role="status">
        {said}
      </span>
    </span>
  );
}
