/**
 * Checks a pool's terms (books rule 3): impossible terms, terms that change for a slice that had begun, a fee that rose or
 * a window that changed without notice, and slices too short to be checked.
 */
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import {
  heldWindowFee,
  type PublishedTerms,
  sliceCutsOf,
  termsAt,
  termsFault,
} from '../../protocol/books/books-terms.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import type { Finding, Suspicions } from './books-alarms.ts';
import { LISTS_A_ROUND } from './credit-lists.ts';
import type { Heights } from './heights.ts';
import type { Terms } from './pool-reads.ts';

/** Slices that are shorter close faster than a miner can judge their lists. */
const SHORT_MILLIS = 60_000 / LISTS_A_ROUND;
/** How long the backlog must last before short slices are reported as the reason. */
const BEHIND_MILLIS = 600_000;
/** How long terms of slices that are not open may be published. */
const OPENING_MILLIS = 30 * 60_000;
/** How long changed terms must be shown before the pool is accused: books replaced by an older copy lack their newest slices, and their terms, for a while. */
const LASTING_MILLIS = 30 * 60_000;
/** Slices, or announcements of one term, that are remembered, of both services. */
const MAX_KEPT = 128;
const SERVICES = ['pplns', 'solo'] as const;
const WINDOW_FEE = 'window_fee_from';

/** Impossible terms could defer every list, or make comparisons meaningless. Throws where nothing can be judged by them. */
export function* checkTerms({ terms }: Terms, heights: Heights, suspicions: Suspicions): Generator<Finding> {
  const { said, known, isApart } = heights;
  const isUnknown = isApart || (said === undefined && known === undefined);
  const newest = isUnknown ? undefined : Math.max(said ?? 0, known ?? 0);
  const fault = termsFault(terms, newest);
  // A new pool has none until its node has answered. If it lasts, the pool hides its lists.
  if (said === undefined && terms.pplns.length + terms.solo.length === 0) throw new Error('the pool has no terms yet');
  // A pool that was away opens all slices of that time before it says that it has read their cuts.
  const apartMillis = fault === 'not_open' ? OPENING_MILLIS : undefined;
  const isSure = suspicions.isSure('terms', fault !== undefined, apartMillis);
  if (fault === undefined || (fault === 'not_open' && !isSure)) return;
  if (isSure) yield ['terms_false', fault, { reason: fault }];
  if (fault !== 'not_open') throw new Error(`the pool’s terms cannot be: ${fault}`);
}

/** Short slices that rarely have lists are no problem: only where there is a backlog. */
export function* checkSliceLength({ terms }: Terms, cutMillis: number): Generator<Finding> {
  const cuts = sliceCutsOf(terms);
  const millis = (cuts ?? Number.POSITIVE_INFINITY) * cutMillis;
  if (millis < SHORT_MILLIS) yield ['slices_short', '', { slice_cuts: cuts, seconds: Math.round(millis / 1_000) }];
}

export class KnownTerms {
  readonly #notices = { fee: new TermNotices('fee'), window: new TermNotices('window') };
  /** The terms of slices while they were open, by `service/slice`, oldest first. */
  readonly #slices = new Map<string, string>();
  /** When the terms of a slice were first seen to differ, or `window_fee_from` to be later. */
  readonly #since = new Map<string, number>();
  /** The lowest `window_fee_from` that the pool ever named. */
  #windowFeeFrom: number | undefined;
  #behindMillis: number | undefined;

  /** Whether there has been a backlog for so long that it has a cause; a miner that was offline is behind for another reason. */
  isLongBehind(isBehind: boolean, nowMillis: number): boolean {
    this.#behindMillis = isBehind ? (this.#behindMillis ?? nowMillis) : undefined;
    return this.#behindMillis !== undefined && nowMillis - this.#behindMillis >= BEHIND_MILLIS;
  }

  /** The terms by which lists are judged: the pool is held to the lowest fees that it ever named (books rule 7). */
  held(terms: Terms): Terms {
    this.#windowFeeFrom = heldWindowFee(this.#windowFeeFrom, terms.window_fee_from);
    return this.#windowFeeFrom === undefined ? terms : { ...terms, window_fee_from: this.#windowFeeFrom };
  }

  /** Those in force when a slice opens hold for it: a pool that publishes others later has changed fee or W after the work was done. */
  *checkChange({ terms, window_fee_from: named }: Terms, height: number | undefined, now: number): Generator<Finding> {
    const before = this.#windowFeeFrom;
    if (this.#isLasting(WINDOW_FEE, before !== undefined && named !== before, now))
      yield ['terms_changed', WINDOW_FEE, { before, now: named ?? 'none' }];
    for (const [name, before] of this.#slices) {
      const [service, slice] = [name.split('/')[0] as BooksService, Number(name.split('/')[1])];
      const after = termsText(terms, service, slice);
      if (this.#isLasting(name, after !== undefined && after !== before, now))
        yield ['terms_changed', name, { service, slice, before, now: after }];
    }
    const cuts = sliceCutsOf(terms);
    if (!isWhole(height) || cuts === undefined) return;
    const slice = Math.floor(height / cuts);
    for (const service of SERVICES) this.#keep(`${service}/${slice}`, termsText(terms, service, slice));
  }

  #keep(name: string, text: string | undefined): void {
    if (text === undefined || this.#slices.has(name)) return;
    this.#slices.set(name, text);
    for (const oldest of this.#slices.keys()) {
      if (this.#slices.size <= MAX_KEPT) break;
      this.#slices.delete(oldest);
      this.#since.delete(oldest);
    }
  }

  #isLasting(name: string, isOther: boolean, nowMillis: number): boolean {
    if (!isOther) this.#since.delete(name);
    else if (!this.#since.has(name)) this.#since.set(name, nowMillis);
    return nowMillis - (this.#since.get(name) ?? nowMillis) >= LASTING_MILLIS;
  }

  /** `pool`: its document, which is read after the terms, so what it announces is not older than they are. */
  *checkNotices({ terms }: Terms, pool: unknown, height: number): Generator<Finding> {
    for (const term of ['fee', 'window'] as const)
      for (const { service, slice, announced, now } of this.#notices[term].note(terms, pool, height))
        yield [`${term}_unannounced`, `${service}/${now}`, { service, slice, announced, now }];
  }

  save(): unknown {
    return {
      slices: [...this.#slices],
      fees: this.#notices.fee.save(),
      windows: this.#notices.window.save(),
      window_fee_from: this.#windowFeeFrom,
    };
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    // A list is a state of an earlier release.
    const state = (Array.isArray(saved) ? { slices: saved } : (saved ?? {})) as Record<string, unknown>;
    const { slices, fees, windows, window_fee_from: from } = state;
    if (isWhole(from)) this.#windowFeeFrom = from;
    for (const [name, text] of Array.isArray(slices) ? slices.filter(Array.isArray).slice(-MAX_KEPT) : [])
      if (typeof name === 'string' && typeof text === 'string') this.#slices.set(name, text);
    this.#notices.fee.restore(fees);
    this.#notices.window.restore(windows);
  }
}

/** Undefined if there are no terms for the slice. */
function termsText(terms: PublishedTerms['terms'], service: BooksService, slice: number): string | undefined {
  const own = termsAt(terms[service], slice);
  if (own === undefined) return undefined;
  const { fee_ppm: fee, window_thousandths: window, slice_cuts: cuts } = own;
  return [fee, window, cuts].every(isWhole) ? `fee ${fee} ppm, window ${window}, ${cuts} cuts` : undefined;
}

export type Unannounced = {
  readonly service: BooksService;
  readonly slice: number;
  readonly announced: number;
  readonly now: number;
};

type Announced = { readonly value: number; readonly changes: readonly (readonly [fromSlice: number, value: number])[] };
/** `slice`: the newest in which the pool said it. */
type Said = Announced & { readonly service: BooksService; slice: number };

const MAX_CHANGES = 64;
/** The pool's document may be older than its terms, by the time that answers are kept. */
const SLACK_CUTS = 240;

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
type WatchedTerm = keyof typeof WATCHED;

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

const saidText = ({ service, value, changes }: Said): string => JSON.stringify([service, value, changes]);

/**
 * What a pool announced in its document of a fee (`fee_ppm` and `fee_changes`) or of its window, remembered to be held
 * against the terms of the slices that open later: a higher fee and another window have a day of notice. Not signed, so a
 * change without notice is a suspicion; a pool whose database fell back may also have lost an announced one.
 */
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
    if (last !== undefined && saidText(last) === saidText(said)) last.slice = Math.max(last.slice, said.slice);
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
