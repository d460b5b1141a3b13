/**
 * How many shares are sent. A server sets the share target; one that is far too easy for the devices (a young chain, a
 * server that has not learned their rate, a malicious one) would cause thousands of shares a second, while a server
 * accepts about a hundred. So the miner gives the devices a harder target if needed: then only the hardest shares are
 * sent, at a rate that the server accepts. Shares that wait to be sent make it harder still, until they are gone: else
 * they would wait for ever, behind as many new ones as are sent. Pure; the time is passed in.
 */

export const PACE = {
  /** Below the default limit per connection of this project's servers. */
  sharesPerSecond: 80,
  leastPerSecond: 1,
  /** In this time those that wait are gone. */
  drainSeconds: 2,
  /** Hits since the last check after which the target is made harder at once. */
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

  /** A hit on a job with this `work`: true if the target should be made harder at once. */
  hit(work: bigint): boolean {
    if (++this.#hits < PACE.burst) return false;
    this.#hits = 0;
    // Hits of the easier target are still arriving: one step at a time.
    if (work < this.#work) return false;
    this.#work = work * PACE.step;
    return true;
  }

  /** The server reports that it gets too many shares. */
  refused(): void {
    this.#refused = true;
  }

  /** Once a second, with the rate of all devices and the number of hits that wait to be checked and sent. */
  look(rate: number | undefined, waiting: number): void {
    this.#hits = 0;
    this.#limit = this.#refused
      ? Math.max(PACE.leastPerSecond, this.#limit / 2)
      : Math.min(PACE.sharesPerSecond, this.#limit + 1);
    this.#refused = false;
    const wanted = Math.max(PACE.leastPerSecond, this.#limit - waiting / PACE.drainSeconds);
    if (rate !== undefined && Number.isFinite(rate)) this.#work = BigInt(Math.max(1, Math.ceil(rate / wanted)));
  }
}
