/**
 * A rate limit for what a neighbour sends: everything received is charged, and the result is how long to wait before
 * reading more.
 */
/** Neighbours whose allowances are kept, also while they are away: more than are known at a time. */
export const MAX_KNOWN = 1_024;

export type Rate = { readonly perSecond: number; readonly burst: number };

export class Allowance {
  readonly #rate: Rate;
  /** The maximum debt. */
  readonly #debt: number;
  #left: number;
  #at: number;

  /** `mostMillis`: the longest wait. In a shared account, one neighbour must not make the others wait for long. */
  constructor(rate: Rate, now: number, mostMillis = Number.POSITIVE_INFINITY) {
    this.#rate = rate;
    this.#debt = (rate.perSecond * mostMillis) / 1000;
    this.#left = rate.burst;
    this.#at = now;
  }

  spend(cost: number, now: number): number {
    const { perSecond, burst } = this.#rate;
    const left = Math.min(burst, this.#left + (Math.max(0, now - this.#at) * perSecond) / 1000) - cost;
    this.#left = Math.max(-this.#debt, left);
    this.#at = now;
    return this.#left >= 0 ? 0 : Math.ceil((-this.#left * 1000) / perSecond);
  }
}

/** Allowances of bytes and of messages, for one connection or shared by several. */
export class ReadingAllowance {
  readonly #bytes: Allowance;
  readonly #messages: Allowance;

  constructor(bytes: Rate, messages: Rate, now: number, mostMillis?: number) {
    this.#bytes = new Allowance(bytes, now, mostMillis);
    this.#messages = new Allowance(messages, now, mostMillis);
  }

  spend(bytes: number, messages: number, now: number): number {
    return Math.max(this.#bytes.spend(bytes, now), this.#messages.spend(messages, now));
  }
}
