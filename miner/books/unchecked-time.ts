/**
 * Since when a part of a pool's books cannot be checked, and why. An outage of an honest pool looks the same, so it is
 * not an alarm. But the miner warns after an hour, and again each time the duration has doubled.
 */
export type UncheckedPart = 'receipts' | 'lists' | 'rewards' | 'payments';

export type UncheckedTimeDependencies = {
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly nowMillis: () => number;
  readonly wallMillis: () => number;
};

const WARN_MILLIS = 3_600_000;
const MAX_WHY = 160;

type Lapse = { readonly sinceMillis: number; readonly since: string; warnAfter: number };

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
        warn('the pool’s books can be checked again', { part, since: lapse.since });
      return;
    }
    const now = nowMillis();
    if (lapse === undefined) {
      const since = new Date(wallMillis()).toISOString();
      this.#lapses.set(part, { sinceMillis: now, since, warnAfter: WARN_MILLIS });
      return;
    }
    if (now - lapse.sinceMillis < lapse.warnAfter) return;
    warn('THE POOL’S BOOKS CANNOT BE CHECKED', { part, since: lapse.since, why: why.slice(0, MAX_WHY) });
    lapse.warnAfter = 2 * (now - lapse.sinceMillis);
  }
}
