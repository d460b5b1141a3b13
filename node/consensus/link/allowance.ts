/**
 * A rate limit for what a neighbour sends: everything received is charged, and the result is how long to wait before
 * reading more.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { SureShare } from '../../../runtime/clients/sure-share.ts';

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

/**
 * What all that are known send together: a message costs a fiftieth of a millisecond, and liars may have most of the seats. Who has no
 * part left is read a few frames at a time.
 */
const TOGETHER = { all: { perSecond: 4_000, burst: 32_000 }, sure: { perSecond: 50, burst: 500 } };
const NO_PART_MILLIS = 1_000;
/** So many bytes cost as much as a message. */
const BYTES_OF_A_MESSAGE = 64 * 1024;

/** Allowances by name, also of those that are away: a new connection is no new allowance. */
export class SharedReading {
  readonly #rates: readonly [bytes: Rate, messages: Rate];
  readonly #own = new BoundedMap<string, ReadingAllowance>(MAX_KNOWN);
  readonly #together: SureShare;

  constructor(bytes: Rate, messages: Rate, now: number) {
    this.#rates = [bytes, messages];
    this.#together = new SureShare(TOGETHER, MAX_KNOWN, now);
  }

  of(name: string, at: number): Pick<ReadingAllowance, 'spend'> {
    const own = this.#own.use(name) ?? new ReadingAllowance(...this.#rates, at);
    this.#own.set(name, own);
    return {
      spend: (bytes, messages, now) => {
        const isLeft = this.#together.take(name, now, messages + bytes / BYTES_OF_A_MESSAGE);
        return Math.max(own.spend(bytes, messages, now), isLeft ? 0 : NO_PART_MILLIS);
      },
    };
  }
}
