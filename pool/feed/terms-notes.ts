/**
 * Records the terms of opened slices in a front end's journal. If the database is replaced by an older copy, these
 * notes are sent again with the rest of the journal, and the slices open with the same terms (books/noted-terms.ts).
 */
import type { Sql } from '../database/connect.ts';
import type { Journal } from '../journal/journal.ts';
import { encodeRecord, SERVICES, type TermsRecord } from '../journal/journal-record.ts';
import type { Outbox } from './outbox.ts';
import type { SliceEnds } from './slice-marks.ts';

/** Slices that a boot notes when it starts; as many as a front end remembers to have signed. */
const KEPT_SLICES = 1_024;

type SliceRow = { service: number; number: number; window: number; fee: number };
/** State of the books: their newest slice, the run of the database server, and the time by its clock. */
type BooksRow = { newest: number; run: string; at: number };

export class TermsNotes {
  readonly #sql: Sql;
  readonly #journal: Pick<Journal, 'append' | 'bootId'>;
  readonly #outbox: Pick<Outbox, 'push'>;
  /**
   * The newest slice that this boot has noted, in both services, and the run of the database server that it was read
   * from.
   */
  #noted = -1;
  #run = '';

  constructor(dependencies: {
    readonly sql: Sql;
    readonly journal: Pick<Journal, 'append' | 'bootId'>;
    readonly outbox: Pick<Outbox, 'push'>;
  }) {
    this.#sql = dependencies.sql;
    this.#journal = dependencies.journal;
    this.#outbox = dependencies.outbox;
  }

  /** Resolves when the terms of all present slices are on disk. */
  async look(): Promise<void> {
    const { books, rows } = await this.#unnoted();
    if (rows.length === 0) return;
    const encoded = runsOf(rows.reverse(), books.at).map(encodeRecord);
    const first = await this.#journal.append(encoded);
    const { bootId } = this.#journal;
    this.#outbox.push(encoded.map((record, i) => ({ bootId, sequence: first + i, record })));
    this.#noted = Math.max(...rows.map(({ number }) => number));
    this.#run = books.run;
  }

  /** One snapshot of the books: a replacement between two reads would combine the slices of one state with the time of another. */
  #unnoted(): Promise<{ books: BooksRow; rows: SliceRow[] }> {
    return this.#sql.begin('isolation level repeatable read read only', async (transaction) => {
      const [row] = await transaction<BooksRow[]>`select coalesce(max(number), -1) as newest,
        pg_postmaster_start_time()::text as run, floor(extract(epoch from now()) * 1000)::float8 as at from slices`;
      const books = row as BooksRow;
      // Books replaced by an older copy open slices again, perhaps with other terms: earlier notes are outdated.
      const isSame = books.run === this.#run && books.newest >= this.#noted;
      const rows = await transaction<SliceRow[]>`select service, number, window_thousandths as window, fee_ppm as fee
        from slices where number > ${isSame ? this.#noted : -1} order by number desc, service
        limit ${KEPT_SLICES * SERVICES.length}`;
      return { books, rows: [...rows] };
    }) as Promise<{ books: BooksRow; rows: SliceRow[] }>;
  }
}

/** Ends of slices are reported only once their terms are noted: nothing of a slice is signed before. */
export const endsAfterNotes =
  (ends: SliceEnds, notes: TermsNotes): SliceEnds =>
  async (known) => {
    const found = await ends(known);
    await notes.look();
    return found;
  };

/** Neighbours of the same terms in one record. Rows of a service come in the order of their numbers. */
function runsOf(rows: readonly SliceRow[], atMillis: number): TermsRecord[] {
  const runs: TermsRecord[] = [];
  const last = new Map<number, number>();
  for (const { service, number, window, fee } of rows) {
    const at = last.get(service);
    const run = at === undefined ? undefined : runs[at];
    if (at !== undefined && run?.windowThousandths === window && run.feePpm === fee && run.through === number - 1) {
      runs[at] = { ...run, through: number };
      continue;
    }
    last.set(service, runs.length);
    runs.push({
      kind: 'terms',
      service: SERVICES[service] as TermsRecord['service'],
      from: number,
      through: number,
      windowThousandths: window,
      feePpm: fee,
      atMillis,
    });
  }
  return runs;
}
