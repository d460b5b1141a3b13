/**
 * The terms that a pool published for slices while they were open (books rule 3: those in force when a slice opens hold for it). A pool that publishes others for
 * one of these slices later has changed fee or W after the work was done.
 */
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, sliceCutsOf, termsAt } from '../../protocol/books/books-terms.ts';
import type { Terms } from './pool-reads.ts';

export type ChangedTerms = {
  readonly service: BooksService;
  readonly slice: number;
  readonly before: string;
  readonly now: string;
};

/** Slices that are remembered, of both services. */
const MAX_KEPT = 128;
/** How long changed terms must be shown before the pool is accused. */
export const LASTING_MILLIS = 30 * 60_000;
const SERVICES = ['pplns', 'solo'] as const;

export class TermsMemory {
  /** By `service/slice`, oldest first. */
  readonly #known = new Map<string, string>();
  /** When the terms of a slice were first seen to differ. */
  readonly #since = new Map<string, number>();

  /** Compares with the earlier published terms, and stores those of the current slice. */
  note({ terms, height }: Terms, nowMillis: number): ChangedTerms[] {
    const changed: ChangedTerms[] = [];
    for (const [name, before] of this.#known) {
      const [service, slice] = [name.split('/')[0] as BooksService, Number(name.split('/')[1])];
      const now = textOf(terms, service, slice);
      if (now === undefined || now === before) this.#since.delete(name);
      else if (this.#isLasting(name, nowMillis)) changed.push({ service, slice, before, now });
    }
    for (const service of SERVICES) {
      const slice = openSlice(terms, height);
      if (slice === -1) continue;
      const now = textOf(terms, service, slice);
      const name = `${service}/${slice}`;
      if (now === undefined || this.#known.has(name)) continue;
      this.#known.set(name, now);
      for (const oldest of this.#known.keys())
        if (this.#known.size > MAX_KEPT) this.#forget(oldest);
        else break;
    }
    return changed;
  }

  #forget(name: string): void {
    this.#known.delete(name);
    this.#since.delete(name);
  }

  /** Books replaced by an older copy lack their newest slices, and their terms, for a while. */
  #isLasting(name: string, nowMillis: number): boolean {
    const since = this.#since.get(name) ?? nowMillis;
    this.#since.set(name, since);
    return nowMillis - since >= LASTING_MILLIS;
  }

  save(): unknown {
    return [...this.#known];
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    if (!Array.isArray(saved)) return;
    for (const [name, text] of saved.filter(Array.isArray).slice(-MAX_KEPT))
      if (typeof name === 'string' && typeof text === 'string') this.#known.set(name, text);
  }
}

/** The current slice of the books; -1 if not known. */
function openSlice(terms: PublishedTerms['terms'], height: unknown): number {
  const cuts = sliceCutsOf(terms);
  return isWhole(height) && cuts !== undefined ? Math.floor(height / cuts) : -1;
}

/** Undefined if there are no terms for the slice. */
function textOf(terms: PublishedTerms['terms'], service: BooksService, slice: number): string | undefined {
  const own = termsAt(terms[service], slice);
  if (own === undefined) return undefined;
  const { fee_ppm: fee, window_thousandths: window, slice_cuts: cuts } = own;
  return [fee, window, cuts].every(isWhole) ? `fee ${fee} ppm, window ${window}, ${cuts} cuts` : undefined;
}
