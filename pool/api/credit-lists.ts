/** Credit lists for reading: once made they never change, so those looked at last are kept, within a bound. */
import { CREDIT_BYTES, creditOf } from '../books/packed.ts';
import type { Sql } from '../database/connect.ts';

export type CreditListRow = {
  readonly id: number;
  readonly service: number;
  readonly slice: number;
  readonly blocks: number;
  readonly reward: bigint;
  readonly madeMillis: number;
};

/** Credits kept: 200 lists of 10,000 accounts, 12 bytes each. */
const KEPT_CREDITS = 2_000_000;

/** In packed form: scanning one is cheaper than decoding it, which would be most of a page's time. */
type Credits = Buffer;

const countOf = (packed: Credits): number => packed.length / CREDIT_BYTES;

export class CreditLists {
  readonly #sql: Sql;
  /** By list, the least recently used first. */
  readonly #kept = new Map<number, Credits>();
  #size = 0;
  /** One read at a time: concurrent callers wait and then find the lists cached. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(dependencies: { readonly sql: Sql }) {
    this.#sql = dependencies.sql;
  }

  /** The database was replaced by an older copy: an id may now belong to another account. */
  forget(): void {
    this.#kept.clear();
    this.#size = 0;
  }

  /** The latest before an id, newest first. */
  async before(id: number, limit: number): Promise<CreditListRow[]> {
    const rows = await this.#sql<
      (Omit<CreditListRow, 'madeMillis'> & { made_millis: string })[]
    >`select id, service, slice,
        blocks, reward, (extract(epoch from made_at) * 1000)::bigint::text as made_millis
      from credit_lists where id < ${id} order by id desc limit ${limit}`;
    return rows.map(({ made_millis, ...row }) => ({ ...row, madeMillis: Number(made_millis) }));
  }

  /** What an account got of each list; lists that gave it nothing are left out. `onRead` gets the number of credits that had to be read. */
  async creditsOf(
    accountId: number,
    ids: readonly number[],
    onRead: (credits: number) => void = () => undefined,
  ): Promise<Map<number, bigint>> {
    if (ids.some((id) => !this.#kept.has(id))) {
      const reading = this.#reading.then(() => this.#read(ids));
      this.#reading = reading.catch(() => undefined);
      onRead(await reading);
    }
    const found = new Map<number, bigint>();
    for (const id of ids) {
      const list = this.#kept.get(id);
      if (list === undefined) continue;
      this.#keep(id, list);
      const credit = creditOf(list, accountId);
      if (credit !== undefined) found.set(id, credit);
    }
    this.#trim();
    return found;
  }

  async #read(ids: readonly number[]): Promise<number> {
    const missing = ids.filter((id) => !this.#kept.has(id));
    if (missing.length === 0) return 0;
    const rows = await this.#sql<{ id: number; credits: Buffer }[]>`select id, credits from credit_lists
      where id = any(${missing}::int[])`;
    for (const row of rows) this.#keep(row.id, row.credits);
    return rows.reduce((sum, row) => sum + countOf(row.credits), 0);
  }

  #keep(id: number, list: Credits): void {
    if (!this.#kept.delete(id)) this.#size += countOf(list);
    this.#kept.set(id, list);
  }

  #trim(): void {
    for (const [id, list] of this.#kept) {
      if (this.#size <= KEPT_CREDITS) return;
      this.#kept.delete(id);
      this.#size -= countOf(list);
    }
  }
}
