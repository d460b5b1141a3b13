/**
 * Lists that were given up because a part of them could not be checked. Whether or not the pool is the cause, it is
 * reported until a later list of the service was checked completely, and long enough to be noticed (`UncheckedTime`).
 */
import type { BooksService } from '../../protocol/books/books-slice.ts';
import type { NotChecked } from '../../protocol/books/books-verdict.ts';

const LEAST_MILLIS = 2 * 3_600_000;
/** The first can be checked only by the finder (`OwnBlocks`); the second is checked separately (`RewardWatch`). */
const ELSEWHERE: readonly NotChecked[] = ['solo_finder', 'later_list'];

export class UnjudgedLists {
  readonly #nowMillis: () => number;
  readonly #lists = new Map<BooksService, { readonly why: string; readonly sinceMillis: number; isPast: boolean }>();

  constructor(nowMillis: () => number) {
    this.#nowMillis = nowMillis;
  }

  /** A list was settled; `missing`: its parts that could not be checked. */
  settled(service: BooksService, slice: number, missing: readonly NotChecked[]): void {
    const left = missing.filter((each) => !ELSEWHERE.includes(each));
    const known = this.#lists.get(service);
    if (left.length > 0) {
      const why = `the list of slice ${slice} of ${service} was not checked: ${left.join(' ')}`;
      this.#lists.set(service, { why, sinceMillis: this.#nowMillis(), isPast: false });
    } else if (known !== undefined) known.isPast = true;
  }

  /** Undefined where all lists could be checked. */
  get why(): string | undefined {
    const now = this.#nowMillis();
    for (const [service, { isPast, sinceMillis }] of this.#lists)
      if (isPast && now - sinceMillis > LEAST_MILLIS) this.#lists.delete(service);
    return [...this.#lists.values()][0]?.why;
  }
}
