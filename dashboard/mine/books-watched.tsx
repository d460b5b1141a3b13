/** What the browser miner found when it compared the pool's books with its receipts. */

import type { PageBooksFigures, PageStorage } from '../../miner/browser/page-books.ts';
import { word } from '../words/language.ts';

/** A page that may keep nothing has none. */
export function storageOf(): PageStorage | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}

export function BooksWatched({ books }: { books: PageBooksFigures | undefined }) {
  if (books === undefined || books.compared + books.alarms.length + books.warnings.length === 0) return null;
  return (
    <section class="card" data-testid="books-watched">
      {books.warnings.map((text) => (
        <p class="note" role="status" key={text}>
          {text}.
        </p>
      ))}
      {books.alarms.length === 0
        ? books.compared > 0 && <p>{word('mine.books_hold', { slice: books.newest })}</p>
        : books.alarms.map(({ message, slice, evidence }) => (
            <p class="bad" role="alert" key={`${message} ${slice}`}>
              {slice === undefined ? `${message}.` : word('mine.alarm_slice', { message, slice: String(slice) })}{' '}
              {evidence === undefined ? null : (
                <a
                  href={`data:application/json,${encodeURIComponent(JSON.stringify(evidence))}`}
                  download={`evidence-${slice}.json`}
                >
                  {word('mine.evidence')}
                </a>
              )}
            </p>
          ))}
    </section>
  );
}
