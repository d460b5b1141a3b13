/**
 * What could not be checked, why, and since when: the property that an unread page is never a lie (books rule 30), and never
 * passes for a check either.
 */
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import type { NotChecked } from '../../protocol/books/books-verdict.ts';
import type { MonotonicClock, WallClock } from '../../runtime/clock/clock.ts';

const PARTS = ['receipts', 'lists', 'rewards', 'payments'] as const;
export type UncheckedPart = (typeof PARTS)[number];

export type UncheckedTimeDependencies = {
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly nowMillis: MonotonicClock;
  readonly wallMillis: WallClock;
};

const WARN_MILLIS = 3_600_000;
const MAX_WHY = 160;

/** `sinceMillis` by the steady clock, `wallMillis` by the time of day. */
type Lapse = { readonly sinceMillis: number; readonly wallMillis: number; warnAfter: number };

const textOf = ({ wallMillis }: Lapse): string => new Date(wallMillis).toISOString();

/**
 * An outage of an honest pool looks the same, so it is not an alarm. But the miner warns after an hour, and again each
 * time the duration has doubled. A restart of the miner does not begin the time anew: whoever mines an hour a day would
 * never be warned.
 */
export class UncheckedTime {
  readonly #dependencies: UncheckedTimeDependencies;
  readonly #lapses = new Map<UncheckedPart, Lapse>();

  constructor(dependencies: UncheckedTimeDependencies) {
    this.#dependencies = dependencies;
  }

  /** `why` is undefined when the part could be checked. */
  note(part: UncheckedPart, why: string | undefined): void {
    const { nowMillis, wallMillis, warn } = this.#dependencies;
    const lapse = this.#lapses.get(part);
    if (why === undefined) {
      this.#lapses.delete(part);
      if (lapse !== undefined && lapse.warnAfter > WARN_MILLIS)
        warn('the pool’s books can be checked again', { part, since: textOf(lapse) });
      return;
    }
    const now = nowMillis();
    if (lapse === undefined) {
      this.#lapses.set(part, { sinceMillis: now, wallMillis: wallMillis(), warnAfter: WARN_MILLIS });
      return;
    }
    if (now - lapse.sinceMillis < lapse.warnAfter) return;
    warn('THE POOL’S BOOKS CANNOT BE CHECKED', { part, since: textOf(lapse), why: why.slice(0, MAX_WHY) });
    lapse.warnAfter = 2 * (now - lapse.sinceMillis);
  }

  save(): unknown {
    return [...this.#lapses].map(([part, { wallMillis, warnAfter }]) => [part, wallMillis, warnAfter]);
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    const { nowMillis, wallMillis } = this.#dependencies;
    for (const [part, sinceWall, warnAfter] of Array.isArray(saved) ? saved.filter(Array.isArray) : []) {
      const isForm = PARTS.includes(part) && isTime(sinceWall) && isTime(warnAfter) && warnAfter >= WARN_MILLIS;
      if (!isForm) continue;
      // The time of day may have been set back.
      const passed = Math.max(0, wallMillis() - sinceWall);
      this.#lapses.set(part, { sinceMillis: nowMillis() - passed, wallMillis: sinceWall, warnAfter });
    }
  }
}

/** Milliseconds of a time that a date can have. */
const isTime = (value: unknown): value is number => isWhole(value) && value <= 8.64e15;

/** Failures in a row after which that is logged. */
const LOGGED_ROUNDS = 6;
/** Lists that answers leave out for this long count as hidden. */
const HIDDEN_MILLIS = 12 * 3_600_000;

/**
 * How long a pool's answers have left its credit lists out, or have stayed behind. A failing pool is repaired within
 * half a day; one that hides its lists keeps failing. Time in which nothing could be read says nothing.
 */
export class HiddenLists {
  /** Consecutive rounds in which lists could not be read. */
  #rounds = 0;
  /** Since when answers leave them out. */
  #omittedMillis: number | undefined;
  /** They could be read at least once. */
  wereRead = false;

  /** They were read. A pool that answers sometimes, but never about suspicious lists, has not shown its lists. */
  read(isSuspicious: boolean): void {
    this.#rounds = 0;
    this.wereRead = true;
    if (!isSuspicious) this.#omittedMillis = undefined;
  }

  /** They could not be read, or were not there: returns the report. */
  failed(isUnread: boolean, nowMillis: number): 'log' | 'hidden' | undefined {
    this.#rounds++;
    if (!isUnread) this.#omittedMillis ??= nowMillis;
    if (this.#rounds === LOGGED_ROUNDS) return 'log';
    const isLong = this.#omittedMillis !== undefined && nowMillis - this.#omittedMillis > HIDDEN_MILLIS;
    return !isUnread && this.#rounds > LOGGED_ROUNDS && isLong ? 'hidden' : undefined;
  }
}

const NOTICED_MILLIS = 2 * 3_600_000;
/** The first can be checked only by the finder (`own-blocks.ts`); the second is checked separately (`rewards.ts`). */
const ELSEWHERE: readonly NotChecked[] = ['solo_finder', 'later_list'];

/**
 * Lists that were given up because a part of them could not be checked. Whether or not the pool is the cause, it is
 * reported until a later list of the service was checked completely, and long enough to be noticed (`UncheckedTime`).
 */
export class UnjudgedLists {
  readonly #nowMillis: MonotonicClock;
  readonly #lists = new Map<BooksService, { readonly why: string; readonly sinceMillis: number; isPast: boolean }>();

  constructor(nowMillis: MonotonicClock) {
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
      if (isPast && now - sinceMillis > NOTICED_MILLIS) this.#lists.delete(service);
    return [...this.#lists.values()][0]?.why;
  }
}
