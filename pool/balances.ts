/**
 * The amounts that an account is owed and was paid, for requests over stratum. A connection's requests are answered in
 * order, so they must not wait for an unavailable database: the balance is then unknown, and shares are still
 * processed.
 */
import { type Bytes, toHex } from '../protocol/bytes.ts';
import type { Sql } from './database/connect.ts';

export type Owed = { readonly pending: bigint; readonly paid: bigint };

export type BalanceOptions = {
  /** How long a miner's connection may wait for the database. */
  readonly waitMillis: number;
  /** Maximum number of pending queries; beyond it none is made. */
  readonly atOnce: number;
};

export const BALANCE_DEFAULTS: BalanceOptions = { waitMillis: 1_000, atOnce: 256 };

export class Balances {
  readonly #options: BalanceOptions;
  readonly #sql: Sql;
  #asked = 0;

  constructor(options: BalanceOptions, dependencies: { readonly sql: Sql }) {
    this.#options = options;
    this.#sql = dependencies.sql;
  }

  /** Undefined if the database does not answer in time. */
  async of(account: Bytes): Promise<Owed | undefined> {
    if (this.#asked >= this.#options.atOnce) return undefined;
    this.#asked++;
    const answer = this.#ask(toHex(account))
      .catch(() => undefined)
      .finally(() => {
        this.#asked--;
      });
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(resolve, this.#options.waitMillis, undefined);
    const owed = await Promise.race([answer, late]);
    clearTimeout(timer);
    return owed;
  }

  async #ask(account: string): Promise<Owed> {
    const [row] = await this.#sql<Owed[]>`select greatest(balance, 0) + in_flight as pending, paid from accounts
      where payload = decode(${account}, 'hex')`;
    return row ?? { pending: 0n, paid: 0n };
  }
}
