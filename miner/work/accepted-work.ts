/**
 * The hash rate as the pool sees it: the work of accepted shares over a sliding 15 minutes (or since the start). It is
 * what the user is paid for, so it is shown beside the devices' own figure. Shares of one second are kept as one, so that
 * its memory is bounded however many there are. Pure; the time is passed in.
 */

const WINDOW = 900_000;
const RESOLUTION = 1_000;
/** A rate needs a minute, or this many shares: fewer would be luck. */
const LEAST_MILLIS = 60_000;
const LEAST_SHARES = 16;

export class AcceptedWork {
  readonly #sums: { at: number; work: bigint }[] = [];
  #began: number | undefined;
  #total = 0n;
  #shares = 0;
  #recent = 0n;

  get total(): bigint {
    return this.#total;
  }

  /** Mining began, or began again: idle time before it is not counted. */
  begin(now: number): void {
    this.#began ??= now;
  }

  add(now: number, work: bigint): void {
    this.#began ??= now;
    this.#total += work;
    this.#shares++;
    this.#recent += work;
    this.#forget(now);
    const last = this.#sums.at(-1);
    if (last !== undefined && now - last.at < RESOLUTION) last.work += work;
    else this.#sums.push({ at: now, work });
  }

  #forget(now: number): void {
    let first = this.#sums[0];
    // A share with a future time was recorded before the clock was set back.
    while (first !== undefined && (first.at <= now - WINDOW || first.at > now)) {
      this.#recent -= first.work;
      this.#sums.shift();
      first = this.#sums[0];
    }
    if (this.#began !== undefined && this.#began > now) this.#began = now;
  }

  /** Hashes per second; undefined while a few shares would dominate it. */
  rate(now: number): number | undefined {
    this.#forget(now);
    if (this.#began === undefined) return undefined;
    const millis = Math.min(WINDOW, now - this.#began);
    const isEarly = millis < LEAST_MILLIS && (this.#shares < LEAST_SHARES || millis < RESOLUTION);
    return isEarly ? undefined : (Number(this.#recent) * 1_000) / millis;
  }
}
