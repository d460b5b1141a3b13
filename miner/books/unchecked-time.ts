/**
 * Since when a part of a pool's books cannot be checked, and why. An outage of an honest pool looks the same, so it is
 * not an alarm. But the miner warns after an hour, and again each time the duration has doubled. A restart of the miner
 * does not begin the time anew: whoever mines an hour a day would never be warned.
 */
import { isWhole } from '../../protocol/books/books-slice.ts';

const PARTS = ['receipts', 'lists', 'rewards', 'payments'] as const;
export type UncheckedPart = (typeof PARTS)[number];

export type UncheckedTimeDependencies = {
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly nowMillis: () => number;
  readonly wallMillis: () => number;
};

const WARN_MILLIS = 3_600_000;
const MAX_WHY = 160;

/** `sinceMillis` by the steady clock, `wallMillis` by the time of day. */
type Lapse = { readonly sinceMillis: number; readonly wallMillis: number; warnAfter: number };

const textOf = ({ wallMillis }: Lapse): string => new Date(wallMillis).toISOString();

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
