/**
 * Hash rates over 10 s, 60 s and 15 min, from readings of a counter that only grows. Pure: the time is passed in, in
 * milliseconds of a clock that should not jump; when it does, or when the counter starts anew because its device was
 * restarted, a new series begins, so that no absurd rate results.
 */

export const WINDOWS = { short: 10_000, medium: 60_000, long: 900_000 } as const;
export type Rates = { readonly [K in keyof typeof WINDOWS]: number | undefined };

/** A longer time between two readings means that the machine slept or the clock jumped: that time is not counted. */
const LONGEST_STEP = 30_000;
/** Minimum time for a rate. */
const SHORTEST_SPAN = 1_000;
/** Readings closer together than this are merged, so the memory of 15 minutes is bounded. */
const RESOLUTION = 1_000;

type Step = { readonly end: number; readonly millis: number; readonly hashes: number };

export class HashRate {
  #steps: Step[] = [];
  #first = 0;
  #last: { readonly at: number; readonly count: number } | undefined;

  /** Call about once a second with the device's counter. */
  read(at: number, count: number): void {
    const last = this.#last;
    if (last === undefined || !Number.isFinite(at) || !Number.isFinite(count)) {
      if (Number.isFinite(at) && Number.isFinite(count)) this.#last = { at, count };
      return;
    }
    const millis = at - last.at;
    if (millis < 0 || millis > LONGEST_STEP) {
      // Old steps end at times of the old clock; they are moved so that they end where the new clock begins.
      const shift = at - last.at;
      this.#steps = this.#steps.slice(this.#first).map((step) => ({ ...step, end: step.end + shift }));
      this.#first = 0;
      this.#last = { at, count };
      return;
    }
    if (count < last.count) {
      this.#last = { at, count };
      return;
    }
    if (millis < RESOLUTION) return;
    this.#steps.push({ end: at, millis, hashes: count - last.count });
    this.#last = { at, count };
    while (this.#first < this.#steps.length && (this.#steps[this.#first] as Step).end <= at - WINDOWS.long)
      this.#first++;
    if (this.#first > 1_024) {
      this.#steps = this.#steps.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Hashes per second over the window, or its known part; undefined if that is too short. */
  over(window: number, at: number): number | undefined {
    let millis = 0;
    let hashes = 0;
    for (let i = this.#steps.length - 1; i >= this.#first; i--) {
      const step = this.#steps[i] as Step;
      if (step.end <= at - window) break;
      millis += step.millis;
      hashes += step.hashes;
    }
    return millis < SHORTEST_SPAN ? undefined : (hashes * 1_000) / millis;
  }

  rates(at: number): Rates {
    return {
      short: this.over(WINDOWS.short, at),
      medium: this.over(WINDOWS.medium, at),
      long: this.over(WINDOWS.long, at),
    };
  }
}

/** `12.3 kH/s`: four figures at most, so that columns stay aligned. */
export function showRate(rate: number | undefined): string {
  if (rate === undefined || !Number.isFinite(rate)) return '-';
  const units = ['H/s', 'kH/s', 'MH/s', 'GH/s', 'TH/s', 'PH/s'];
  let unit = 0;
  let value = rate;
  while (value >= 999.95 && unit < units.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}
