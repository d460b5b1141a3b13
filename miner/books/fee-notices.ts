/**
 * The fees that a pool announced (`fee_ppm` and `fee_changes` of its document), remembered to be held against the terms
 * of the slices that open later: a higher fee has a day of notice (books rule 3). Not signed, so a rise without notice
 * is a suspicion; a pool whose database fell back may also have lost an announced reduction.
 */
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, sliceCutsOf, termsAt } from '../../protocol/books/books-terms.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';

export type UnannouncedFee = {
  readonly service: BooksService;
  readonly slice: number;
  readonly announced: number;
  readonly now: number;
};

type Announced = { readonly fee: number; readonly changes: readonly (readonly [fromSlice: number, fee: number])[] };
/** `slice`: the newest in which the pool said it. */
type Said = Announced & { readonly service: BooksService; slice: number };

const MAX_KEPT = 128;
const MAX_CHANGES = 64;
/** The pool's document may be older than its terms, by the time that answers are kept. */
const SLACK_CUTS = 240;
const SERVICES = ['pplns', 'solo'] as const;

/** Undefined if the document has no such fields: another pool may not announce fees. */
function readAnnounced(pool: unknown, service: BooksService): Announced | undefined {
  const { services } = (pool ?? {}) as { services?: unknown };
  if (!Array.isArray(services)) return undefined;
  const own = services.find((each) => each?.service === service);
  const changes: unknown = own?.fee_changes;
  if (!isWhole(own?.fee_ppm) || !Array.isArray(changes) || changes.length > MAX_CHANGES) return undefined;
  if (!changes.every((each) => isWhole(each?.from_slice) && isWhole(each?.fee_ppm))) return undefined;
  return { fee: own.fee_ppm, changes: changes.map((each) => [each.from_slice, each.fee_ppm] as const) };
}

const feeSaid = ({ fee, changes }: Announced, slice: number): number =>
  changes.findLast(([from]) => from <= slice)?.[1] ?? fee;

const textOf = ({ service, fee, changes }: Said): string => JSON.stringify([service, fee, changes]);

export class FeeNotices {
  /** Oldest first. */
  readonly #said: Said[] = [];

  /** Compares the fee of the slice of `height` with what was announced for it, and remembers what is announced now. */
  note(terms: PublishedTerms['terms'], pool: unknown, height: number): UnannouncedFee[] {
    const cuts = sliceCutsOf(terms);
    if (cuts === undefined) return [];
    const slice = Math.floor(height / cuts);
    const found: UnannouncedFee[] = [];
    for (const service of SERVICES) {
      const now = termsAt(terms[service], slice)?.fee_ppm;
      const bound = this.#said.filter(
        (said) => said.service === service && slice * cuts < said.slice * cuts + INTERVAL_CUTS - SLACK_CUTS,
      );
      const announced = Math.min(...bound.map((said) => feeSaid(said, slice)));
      if (isWhole(now) && now > announced) found.push({ service, slice, announced, now });
      const said = readAnnounced(pool, service);
      if (said !== undefined) this.#keep({ service, slice, ...said });
    }
    return found;
  }

  #keep(said: Said): void {
    const last = this.#said.findLast(({ service }) => service === said.service);
    if (last !== undefined && textOf(last) === textOf(said)) last.slice = Math.max(last.slice, said.slice);
    else this.#said.push(said);
    if (this.#said.length > MAX_KEPT) this.#said.shift();
  }

  save(): unknown {
    return this.#said.map(({ service, slice, fee, changes }) => [service, slice, fee, changes]);
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    if (!Array.isArray(saved)) return;
    for (const [service, slice, fee, changes] of saved.filter(Array.isArray).slice(-MAX_KEPT)) {
      const isForm = SERVICES.includes(service) && isWhole(slice) && isWhole(fee) && Array.isArray(changes);
      if (isForm && changes.every((each) => Array.isArray(each) && each.length === 2 && each.every(isWhole)))
        this.#said.push({ service, slice, fee, changes: changes as [number, number][] });
    }
  }
}
