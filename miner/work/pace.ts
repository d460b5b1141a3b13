/**
 * How many shares are sent. A server sets the share target; one that is far too easy for the devices (a young chain, a
 * server that has not learned their rate, a malicious one) would ask for thousands of shares a second, and a server takes
 * about a hundred. So the devices get a harder target of the miner's own where that is needed: what is sent are the
 * hardest shares, at a pace the server takes. Pure; the time is passed in.
 */

export const PACE = {
  /** Below what a server of this project takes from one connection by default. */
  sharesPerSecond: 80,
  leastPerSecond: 1,
  /** Hits since the last look after which the target is made harder without waiting for the next. */
  burst: 240,
  step: 8n,
} as const;

export class Pace {
  #limit: number = PACE.sharesPerSecond;
  #work = 1n;
  #hits = 0;
  #refused = false;

  /** Shares a second that are aimed at. */
  get limit(): number {
    return this.#limit;
  }

  /** The work that a hit must have at least. */
  workFor(shareWork: bigint): bigint {
    return shareWork > this.#work ? shareWork : this.#work;
  }

  /** A hit came on a job whose hits have `work`: true when the target is to be made harder at once. */
  hit(work: bigint): boolean {
    if (++this.#hits < PACE.burst) return false;
    this.#hits = 0;
    // Hits of the easier target are still on their way: one step at a time.
    if (work < this.#work) return false;
    this.#work = work * PACE.step;
    return true;
  }

  /** The server says that it is too much for it. */
  refused(): void {
    this.#refused = true;
  }

  /** Once a second, with the rate of all devices. */
  look(rate: number | undefined): void {
    this.#hits = 0;
    this.#limit = this.#refused
      ? Math.max(PACE.leastPerSecond, this.#limit / 2)
      : Math.min(PACE.sharesPerSecond, this.#limit + 1);
    this.#refused = false;
    if (rate !== undefined && Number.isFinite(rate)) this.#work = BigInt(Math.max(1, Math.ceil(rate / this.#limit)));
  }
}
