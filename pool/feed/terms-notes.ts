/**
 * Notes in a front end's journal the terms that slices opened with. Should the database fall back to a state before, the notes come again
 * with the rest of the journal, and the slices open with the same terms (books/noted-terms.ts).
 */
import type { Sql } from '../database/connect.ts';
import type { Journal } from '../journal.ts';
import { encodeRecord, SERVICES, type TermsRecord } from '../journal-record.ts';
import type { Outbox } from './outbox.ts';
import type { SliceEnds } from './slice-marks.ts';

/** Slices that a boot notes when it starts; as many as a front end remembers to have signed. */
const KEPT_SLICES = 1_024;

type SliceRow = { service: number; number: number; window: number; fee: number };

export class TermsNotes {
  readonly #sql: Sql;
  readonly #journal: Pick<Journal, 'append' | 'bootId'>;
  readonly #outbox: Pick<Outbox, 'push'>;
  /** The newest slice that this boot has noted, in both services. */
  #noted = -1;

  constructor(dependencies: {
    readonly sql: Sql;
    readonly journal: Pick<Journal, 'append' | 'bootId'>;
    readonly outbox: Pick<Outbox, 'push'>;
  }) {
    this.#sql = dependencies.sql;
    this.#journal = dependencies.journal;
    this.#outbox = dependencies.outbox;
  }

  /** Resolves when the terms of all slices that are there are on the disk. */
  async look(): Promise<void> {
    const rows = await this.#sql<SliceRow[]>`select service, number, window_thousandths as window, fee_ppm as fee
      from slices where number > ${this.#noted} order by number desc, service limit ${KEPT_SLICES * SERVICES.length}`;
    if (rows.length === 0) return;
    const encoded = runsOf(rows.reverse()).map(encodeRecord);
    const first = await this.#journal.append(encoded);
    const { bootId } = this.#journal;
    this.#outbox.push(encoded.map((record, i) => ({ bootId, sequence: first + i, record })));
    this.#noted = Math.max(...rows.map(({ number }) => number));
  }
}

/** Ends of slices that are told only once their terms are noted: nothing is signed of a slice before. */
export const endsAfterNotes =
  (ends: SliceEnds, notes: TermsNotes): SliceEnds =>
  async (known) => {
    const found = await ends(known);
    await notes.look();
    return found;
  };

/** Neighbours of the same terms in one record. Rows of a service come in the order of their numbers. */
function runsOf(rows: readonly SliceRow[]): TermsRecord[] {
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
    });
  }
  return runs;
}
