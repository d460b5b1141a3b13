/** A bounded cache of credit lists: they never change, so the most recently used ones are kept. */
import { CREDIT_BYTES, CreditIndex, creditOf } from '../../books/packed.ts';
import type { Sql } from '../../database/connect.ts';

export type CreditListRow = {
  readonly id: number;
  readonly service: number;
  readonly slice: number;
  readonly blocks: number;
  readonly reward: bigint;
  readonly madeMillis: number;
};

/** Credits kept: 200 lists of 10,000 accounts, 12 bytes each and 8 more with an index. */
const KEPT_CREDITS = 2_000_000;
/** A list is indexed after this many scans: the index of 10,000 rows costs about as much as twenty scans. */
const SCANS = 16;
/** Lists indexed for one page, so that no page waits for the indexes of all its lists. */
const INDEXED_AT_ONCE = 2;

/** One list in packed form. A list that is rarely read is scanned, one that is often read is indexed. */
class Credits {
  readonly count: number;
  readonly #packed: Buffer;
  #scans = 0;
  #index: CreditIndex | undefined;

  constructor(packed: Buffer) {
    this.#packed = packed;
    this.count = packed.length / CREDIT_BYTES;
  }

  get needsIndex(): boolean {
    return this.#index === undefined && this.#scans >= SCANS;
  }

  index(): void {
    this.#index = new CreditIndex(this.#packed);
  }

  of(accountId: number): bigint | undefined {
    if (this.#index !== undefined) return this.#index.creditOf(accountId);
    this.#scans++;
    return creditOf(this.#packed, accountId);
  }
}

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

  /**
   * An account's credit in each list; lists without one are left out. `onRead` gets the number of credits that had to
   * be read.
   */
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
    let indexed = 0;
    for (const id of ids) {
      const list = this.#kept.get(id);
      if (list === undefined) continue;
      this.#keep(id, list);
      if (list.needsIndex && indexed++ < INDEXED_AT_ONCE) list.index();
      const credit = list.of(accountId);
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
    const lists = rows.map((row) => [row.id, new Credits(row.credits)] as const);
    for (const [id, list] of lists) this.#keep(id, list);
    return lists.reduce((sum, [, list]) => sum + list.count, 0);
  }

  #keep(id: number, list: Credits): void {
    if (!this.#kept.delete(id)) this.#size += list.count;
    this.#kept.set(id, list);
  }

  #trim(): void {
    for (const [id, list] of this.#kept) {
      if (this.#size <= KEPT_CREDITS) return;
      this.#kept.delete(id);
      this.#size -= list.count;
    }
  }
}
