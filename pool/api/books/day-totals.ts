/**
 * What an account was credited each day: the difference of its totals at the ends of two days. The totals of all accounts at the end of a day are made once, from the note before
 * it and the lists since, and serve every miner that asks: so nobody is charged for them.
 */
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { addCreditsById } from '../../books/packed.ts';
import type { Sql } from '../../database/connect.ts';

export type DayCredit = { readonly day: number; readonly amount: bigint };

/** Days shown, today with them. */
export const EARNING_DAYS = 30;
const DAY_MILLIS = 86_400_000;
/** Until then a list of the day before may still come. */
const SETTLED_MILLIS = 600_000;
/** Lists read at a time, so that the event loop is not blocked for long. */
const READ_LISTS = 2;

/** `sums` by account id. */
type Totals = { readonly through: number; readonly sums: BigUint64Array };
const NOTHING: Totals = { through: 0, sums: new BigUint64Array(0) };

export class DayTotals {
  readonly #sql: Sql;
  readonly #now: SteadyClock;
  /** The last list of each day that has one. */
  readonly #ends = new Map<number, number>();
  #settledDay = 0;
  /** By the last list that they include. */
  #kept = new Map<number, Totals>();
  /** One at a time: who comes meanwhile finds the totals kept. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(dependencies: { readonly sql: Sql; readonly now: SteadyClock }) {
    this.#sql = dependencies.sql;
    this.#now = dependencies.now;
  }

  /** The database was replaced by an older copy. What is being read now is of the copy before. */
  forget(): void {
    this.#reading = this.#reading.then(() => {
      this.#ends.clear();
      this.#settledDay = 0;
      this.#kept.clear();
    });
  }

  /** One entry for each of the last days since `sinceMillis`, oldest first. */
  earned(accountId: number, sinceMillis: number): Promise<DayCredit[]> {
    const earned = this.#reading.then(() => this.#earned(accountId, sinceMillis));
    this.#reading = earned.catch(() => undefined);
    return earned;
  }

  async #earned(accountId: number, sinceMillis: number): Promise<DayCredit[]> {
    const today = Math.floor(this.#now() / DAY_MILLIS);
    const first = today - EARNING_DAYS + 1;
    await this.#readEnds(first);
    // Days without a list end with the list of a day before. A clock that went back makes no list come twice.
    const lasts: number[] = [];
    for (let day = first - 1; day <= today; day++) lasts.push(Math.max(lasts.at(-1) ?? 0, this.#ends.get(day) ?? 0));
    const totals: Totals[] = [];
    for (const last of lasts) {
      const made = await this.#through(last, totals.at(-1) ?? NOTHING);
      totals.push(made);
      // What is made stays, should the next one fail.
      this.#kept.set(last, made);
    }
    this.#kept = new Map(totals.map((one) => [one.through, one]));
    const sums = totals.map(({ sums: all }) => all[accountId] ?? 0n);
    const own = Math.max(first, Math.floor(sinceMillis / DAY_MILLIS));
    return sums
      .slice(1)
      .map((sum, i) => ({ day: first + i, amount: sum - (sums[i] as bigint) }))
      .filter(({ day }) => day >= own);
  }

  async #readEnds(first: number): Promise<void> {
    const now = this.#now();
    const after = this.#ends.get(this.#settledDay) ?? 0;
    const rows = await this.#sql<{ day: number; last: number }[]>`select
        floor(extract(epoch from made_at) / 86400)::int as day, max(id) as last
      from credit_lists where id > ${after} group by 1`;
    for (const { day, last } of rows) this.#ends.set(day, Math.max(last, this.#ends.get(day) ?? 0));
    const before = [...this.#ends].filter(([day]) => day < first).reduce((most, [, last]) => Math.max(most, last), 0);
    for (const day of this.#ends.keys()) if (day < first) this.#ends.delete(day);
    this.#ends.set(first - 1, before);
    const open = Math.floor((now - SETTLED_MILLIS) / DAY_MILLIS);
    this.#settledDay = Math.max(...[...this.#ends.keys()].filter((day) => day < open));
  }

  async #through(last: number, before: Totals): Promise<Totals> {
    const kept = last === before.through ? before : this.#kept.get(last);
    if (kept !== undefined) return kept;
    const sql = this.#sql;
    const nearest = [before, ...this.#kept.values()]
      .filter(({ through }) => through <= last)
      .reduce((best, one) => (one.through > best.through ? one : best));
    const [note] = await sql<{ through: number; packed: Buffer }[]>`select list_id as through, totals as packed
      from credit_totals where list_id > ${nearest.through} and list_id <= ${last} order by list_id desc limit 1`;
    const [newest] = await sql<{ id: number }[]>`select coalesce(max(id), 0) as id from accounts`;
    const sums = new BigUint64Array(Math.max((newest?.id ?? 0) + 1, nearest.sums.length));
    if (note === undefined) sums.set(nearest.sums);
    else addCreditsById(sums, note.packed);
    for (let after = note?.through ?? nearest.through; after < last; ) {
      // A statement for each part: a cursor over all would have to end within the time of one statement.
      const lists = await sql<{ id: number; credits: Buffer }[]>`select id, credits from credit_lists
        where id > ${after} and id <= ${last} order by id limit ${READ_LISTS}`;
      for (const { credits } of lists) addCreditsById(sums, credits);
      after = lists.at(-1)?.id ?? last;
    }
    return { through: last, sums };
  }
}
