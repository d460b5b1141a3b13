/**
 * Notices a device that searches but counts no hashes. Pure: the time is passed in. Time in which it need not count (no
 * job, paused, building its dataset) and jumps of the clock restart the wait.
 */

export const WATCHDOG_DEFAULTS = { silentMillis: 30_000, jumpMillis: 10_000 } as const;

export class Watchdog {
  readonly #silentMillis: number;
  #checkedAt: number | undefined;
  #movedAt = 0;
  #count = -1;

  constructor(silentMillis: number = WATCHDOG_DEFAULTS.silentMillis) {
    this.#silentMillis = silentMillis;
  }

  /** True when the device has been silent for too long. Call it about once a second. */
  check(now: number, searching: boolean, count: number): boolean {
    const gap = this.#checkedAt === undefined ? 0 : now - this.#checkedAt;
    const jumped = gap < 0 || gap > Math.max(WATCHDOG_DEFAULTS.jumpMillis, this.#silentMillis / 2);
    if (!searching || jumped || this.#checkedAt === undefined || count !== this.#count) {
      this.#movedAt = now;
      this.#count = count;
    }
    this.#checkedAt = now;
    return now - this.#movedAt >= this.#silentMillis;
  }

  reset(): void {
    this.#checkedAt = undefined;
  }
}
