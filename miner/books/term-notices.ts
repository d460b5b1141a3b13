/**
 * What a pool announced in its document of a fee (`fee_ppm` and `fee_changes`) or of its window, remembered to be held
 * against the terms of the slices that open later: a higher fee and another window have a day of notice (books rule 3). Not
 * signed, so a change without notice is a suspicion; a pool whose database fell back may also have lost an announced one.
 */
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, sliceCutsOf, termsAt } from '../../protocol/books/books-terms.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';

export type Unannounced = {
  readonly service: BooksService;
  readonly slice: number;
  readonly announced: number;
  readonly now: number;
};

type Announced = { readonly value: number; readonly changes: readonly (readonly [fromSlice: number, value: number])[] };
/** `slice`: the newest in which the pool said it. */
type Said = Announced & { readonly service: BooksService; slice: number };

const MAX_KEPT = 128;
const MAX_CHANGES = 64;
/** The pool's document may be older than its terms, by the time that answers are kept. */
const SLACK_CUTS = 240;
const SERVICES = ['pplns', 'solo'] as const;

/** The value in force when it was said, and those that were announced up to a slice. */
const saidUpTo = ({ value, changes }: Announced, slice: number): number[] => [
  value,
  ...changes.filter(([from]) => from <= slice).map(([, each]) => each),
];

/** Where it is in the documents, and whether a value is one that was announced. */
const WATCHED = {
  fee: {
    field: 'fee_ppm',
    changes: 'fee_changes',
    isKept: (said: readonly number[], now: number) => now <= (said.at(-1) as number),
  },
  // A change that was announced may be taken back.
  window: {
    field: 'window_thousandths',
    changes: 'window_changes',
    isKept: (said: readonly number[], now: number) => said.includes(now),
  },
} as const;
export type WatchedTerm = keyof typeof WATCHED;

/** Undefined if the document has no such fields: another pool may not announce them. */
function readAnnounced(pool: unknown, service: BooksService, term: WatchedTerm): Announced | undefined {
  const { field, changes: list } = WATCHED[term];
  const { services } = (pool ?? {}) as { services?: unknown };
  if (!Array.isArray(services)) return undefined;
  const own = services.find((each) => each?.service === service);
  const changes: unknown = own?.[list];
  if (!isWhole(own?.[field]) || !Array.isArray(changes) || changes.length > MAX_CHANGES) return undefined;
  if (!changes.every((each) => isWhole(each?.from_slice) && isWhole(each?.[field]))) return undefined;
  return { value: own[field], changes: changes.map((each) => [each.from_slice, each[field]] as const) };
}

const textOf = ({ service, value, changes }: Said): string => JSON.stringify([service, value, changes]);

export class TermNotices {
  readonly #term: WatchedTerm;
  /** Oldest first. */
  readonly #said: Said[] = [];

  constructor(term: WatchedTerm) {
    this.#term = term;
  }

  /** Compares the terms of the slice of `height` with what was announced for it, and remembers what is announced now. */
  note(terms: PublishedTerms['terms'], pool: unknown, height: number): Unannounced[] {
    const cuts = sliceCutsOf(terms);
    if (cuts === undefined) return [];
    const slice = Math.floor(height / cuts);
    const found: Unannounced[] = [];
    for (const service of SERVICES) {
      const { field, isKept } = WATCHED[this.#term];
      const now = termsAt(terms[service], slice)?.[field];
      const bound = this.#said.filter(
        (said) =>
          said.service === service &&
          said.slice !== slice + 1 &&
          slice * cuts < said.slice * cuts + INTERVAL_CUTS - SLACK_CUTS,
      );
      const broken = isWhole(now)
        ? bound.map((said) => saidUpTo(said, slice)).filter((said) => !isKept(said, now))
        : [];
      const announced = Math.min(...broken.map((said) => said.at(-1) as number));
      if (isWhole(now) && broken.length > 0) found.push({ service, slice, announced, now });
      const said = readAnnounced(pool, service, this.#term);
      if (said !== undefined) this.#keep({ service, slice, ...said }, said.value !== now);
    }
    return found;
  }

  /** Answers are kept for seconds: a new document that differs from the terms may be newer, and is about the next slice. */
  #keep(said: Said, isOther: boolean): void {
    const last = this.#said.findLast(({ service }) => service === said.service);
    if (last !== undefined && textOf(last) === textOf(said)) last.slice = Math.max(last.slice, said.slice);
    else this.#said.push({ ...said, slice: said.slice + (isOther ? 1 : 0) });
    if (this.#said.length > MAX_KEPT) this.#said.shift();
  }

  save(): unknown {
    return this.#said.map(({ service, slice, value, changes }) => [service, slice, value, changes]);
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    if (!Array.isArray(saved)) return;
    for (const [service, slice, value, changes] of saved.filter(Array.isArray).slice(-MAX_KEPT)) {
      const isForm = SERVICES.includes(service) && isWhole(slice) && isWhole(value) && Array.isArray(changes);
      if (isForm && changes.every((each) => Array.isArray(each) && each.length === 2 && each.every(isWhole)))
        this.#said.push({ service, slice, value, changes: changes as [number, number][] });
    }
  }
}
