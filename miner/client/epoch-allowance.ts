/**
 * Limits the epochs that a pool may cause to be prepared (docs/protocol/pow.md, P15): each may cost the miner a dataset
 * of 2 GiB, and a server can lie about everything except elapsed time. So every pool has its own allowance, which
 * refills slowly and covers both jobs and building ahead; and once a pool has named a height, later ones must follow
 * from it at the pace of a chain. Allowances of different pools are independent. Pure; the time is passed in.
 */
import { INTERVAL_CUTS, type NetworkName, powEpoch } from '../../protocol/network.ts';
import { type Refusal, refusal } from '../miner-error.ts';

/** Milliseconds of a monotonic clock, and of the wall clock: only the latter shows that a machine slept. */
export type Moment = { readonly steady: number; readonly wall: number };

export type EpochWish = { readonly pool: string; readonly epoch: number; readonly height: number };

/** State saved across restarts, by pool. */
export type SavedAllowance = Readonly<
  Record<string, { readonly tokens: number; readonly atMillis: number; readonly paid: readonly number[] }>
>;

/** Three at once cover a change of the epoch with a pool whose nodes disagree; then one an hour. */
export const EPOCH_ALLOWANCE = { burst: 3, refillMillis: 3_600_000 } as const;
/** A development chain's epochs may last a minute, and its dataset is built in a moment. */
const DEVELOPMENT_ALLOWANCE = { burst: 12, refillMillis: 5_000 } as const;
/** A cut takes 2.5 s; on average never half of that. */
const FASTEST_CUT_MILLIS = 1_250;
/** A node may have been behind by this many cuts (a day) when it gave its first job. */
const CATCH_UP_CUTS = INTERVAL_CUTS;
/** A pool whose chain was really replaced is accepted again after this long without a job, or after a restart. */
const FORGET_MILLIS = 3_600_000;

type Account = {
  tokens: number;
  at: Moment;
  /** Epochs of the last tokens, at most two: continuing with them, also after a restart, costs nothing. */
  paid: readonly number[];
  /** The first height it named, and when; and when its last job came. */
  first: { readonly height: number; readonly at: Moment } | undefined;
  seenAt: Moment;
};

const elapsed = (from: Moment, to: Moment): number => Math.max(0, to.steady - from.steady, to.wall - from.wall);

export class EpochAllowance {
  readonly #isDevelopment: boolean;
  readonly #burst: number;
  readonly #refillMillis: number;
  readonly #accounts = new Map<string, Account>();
  readonly #onSpent: (saved: SavedAllowance) => void;

  constructor(
    network: NetworkName,
    now: Moment,
    saved: SavedAllowance = {},
    onSpent: (saved: SavedAllowance) => void = () => undefined,
  ) {
    this.#isDevelopment = network === 'development';
    const { burst, refillMillis } = this.#isDevelopment ? DEVELOPMENT_ALLOWANCE : EPOCH_ALLOWANCE;
    this.#burst = burst;
    this.#refillMillis = refillMillis;
    this.#onSpent = onSpent;
    for (const [pool, { tokens, atMillis, paid }] of Object.entries(saved)) {
      const account: Account = { tokens: Math.min(tokens, burst), at: now, paid, first: undefined, seenAt: now };
      this.#refill(account, Math.max(0, now.wall - atMillis));
      this.#accounts.set(pool, account);
    }
  }

  /** Why a job of this epoch is refused; undefined if it is accepted. `ready` are the epochs that need no work. */
  refuses(wish: EpochWish, ready: readonly number[], now: Moment): Refusal | undefined {
    const account = this.#account(wish.pool, now);
    if (elapsed(account.seenAt, now) >= FORGET_MILLIS) account.first = undefined;
    if (!ready.includes(wish.epoch) && !account.paid.includes(wish.epoch)) {
      if (!this.#isPlausible(account, wish, now))
        return refusal(
          'job_epoch',
          `epoch ${wish.epoch} at height ${wish.height} cannot follow the height ${account.first?.height} that the pool named before`,
        );
      if (!this.#spend(account, [wish.epoch], now))
        return refusal('job_epoch', `the pool changes the epoch too often: ${wish.epoch}`);
    }
    account.first ??= { height: wish.height, at: now };
    account.seenAt = now;
    return undefined;
  }

  /** Whether an epoch that a pool's job only announces may be built now. */
  allowsAhead(pool: string, epoch: number, ready: readonly number[], now: Moment): boolean {
    const account = this.#account(pool, now);
    if (ready.includes(epoch) || account.paid.includes(epoch)) return true;
    return this.#spend(account, [...account.paid.slice(-1), epoch], now);
  }

  #account(pool: string, now: Moment): Account {
    let account = this.#accounts.get(pool);
    if (account === undefined) {
      account = { tokens: this.#burst, at: now, paid: [], first: undefined, seenAt: now };
      this.#accounts.set(pool, account);
    }
    return account;
  }

  #isPlausible({ first }: Account, { epoch, height }: EpochWish, now: Moment): boolean {
    // A development chain's epochs and cuts may have any length.
    if (first === undefined || this.#isDevelopment) return true;
    const highest = first.height + CATCH_UP_CUTS + elapsed(first.at, now) / FASTEST_CUT_MILLIS;
    return height <= highest && epoch >= powEpoch(first.height) - 1;
  }

  #refill(account: Account, millis: number): void {
    account.tokens = Math.min(this.#burst, account.tokens + millis / this.#refillMillis);
  }

  #spend(account: Account, paid: readonly number[], now: Moment): boolean {
    this.#refill(account, elapsed(account.at, now));
    account.at = now;
    if (account.tokens < 1) return false;
    account.tokens -= 1;
    account.paid = paid;
    this.#onSpent(this.#saved(now));
    return true;
  }

  #saved(now: Moment): SavedAllowance {
    const accounts = [...this.#accounts].filter(([, { paid }]) => paid.length > 0);
    for (const [, account] of accounts) {
      this.#refill(account, elapsed(account.at, now));
      account.at = now;
    }
    return Object.fromEntries(accounts.map(([pool, { tokens, paid }]) => [pool, { tokens, atMillis: now.wall, paid }]));
  }
}
