/**
 * Audits the accounts of a payout's recipients before anything is sent (books rule 23): an account whose row does not
 * follow from its credits and payments is not paid; the others are. This reads a few rows per payout: credit lists
 * never change, so each is read once, when it is new, and at the start only those after the newest note of all credits.
 */
import { formatAddress } from '../../protocol/address.ts';
import { equalBytes } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { type MonotonicClock, monotonicMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { type AccountRow, accountRows, balanceOf } from '../books/account-row.ts';
import { addCredits, type CreditTotal, creditsOfList, listsAfter, readTotals, treeOf } from '../books/credit-totals.ts';
import { unpackCredits } from '../books/packed.ts';
import type { Sql, Transaction } from '../database/connect.ts';

/**
 * A list that failed is read again after this time, because it may have been corrected, and not for every recipient.
 */
export const RETRY_MILLIS = 10_000;

type Committing = { root: Buffer; credits: Buffer };

/** In place of a list: the note of all credits that reading started from. */
const NOTE = 0;

export type AccountCheckDependencies = {
  readonly sql: Sql;
  readonly log?: Pick<Logger, 'error'>;
  /** Milliseconds of a clock that does not jump. */
  readonly now?: MonotonicClock;
};

export class AccountCheck {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #log: Pick<Logger, 'error'> | undefined;
  readonly #now: MonotonicClock;
  /** By account: all credits, and the newest list that has one. Summed up when a list is first read: a later edit of it changes nothing here. */
  readonly #credits = new Map<number, CreditTotal>();
  /** By account: the first list with a credit for it; NOTE if that is the note. */
  readonly #first = new Map<number, number>();
  /** Lists whose amounts do not add up, and their accounts. */
  readonly #broken = new Map<number, ReadonlySet<number>>();
  /** Whether each checked list matches its root. */
  readonly #rooted = new Map<number, boolean>();
  /** Address payloads that a list's root commits to. */
  readonly #committed = new Map<number, Buffer>();
  /** Accounts whose checked lists all matched their roots. */
  readonly #passed = new Set<number>();
  #through: number | undefined;
  #note = 0;
  #retryAt = 0;

  constructor(options: { readonly network: NetworkName }, dependencies: AccountCheckDependencies) {
    this.#network = options.network;
    this.#sql = dependencies.sql;
    this.#log = dependencies.log;
    this.#now = dependencies.now ?? monotonicMillis;
  }

  /** Why accounts must not be paid; accounts that may be paid are left out. */
  failures(accountIds: readonly number[]): Promise<Map<number, string>> {
    // One snapshot of the books: a list that is made meanwhile changes balances.
    return this.#sql.begin('isolation level repeatable read read only', (sql) => this.#failures(sql, accountIds));
  }

  async #failures(sql: Transaction, accountIds: readonly number[]): Promise<Map<number, string>> {
    await this.#readLists(sql);
    const rows = await accountRows(sql, accountIds);
    const byId = new Map(rows.map((row) => [row.id, row]));
    const found = new Map<number, string>();
    for (const id of accountIds) {
      const row = byId.get(id);
      const why = row === undefined ? 'the account is gone' : ((await this.#identity(sql, row)) ?? this.#amounts(row));
      if (why !== undefined) found.set(id, why);
    }
    return found;
  }

  #amounts(row: AccountRow): string | undefined {
    const { id, balance, in_flight, paid, flying, settled } = row;
    const broken = [...this.#broken].find(([, accounts]) => accounts.has(id))?.[0];
    if (broken !== undefined) return `credit list ${broken} does not add up`;
    const differs = (what: string, books: bigint, computed: bigint) =>
      books === computed ? undefined : `${what} is ${books} in the books and ${computed} by its credits and payouts`;
    const credited = this.#credits.get(id)?.sum ?? 0n;
    return (
      differs('in flight', in_flight, BigInt(flying)) ??
      differs('paid', paid, BigInt(settled)) ??
      differs('balance', balance, balanceOf(credited, row))
    );
  }

  /**
   * Checks the identity of an account: its payload is the one it was created with, its address matches the payload, and
   * old and recent lists commit to it. The first check finds an edit of one table; the last finds an edit of both.
   */
  async #identity(sql: Transaction, { id, payload, address, name }: AccountRow): Promise<string | undefined> {
    const own = attempt(() => formatAddress(payload, this.#network));
    if (!own.ok || own.value !== address) return 'its address is not that of its payload';
    if (name === null) return 'the payload that it was made with is not on record';
    if (!name.equals(payload)) return 'its payload was changed';
    const lists = this.#passed.has(id) ? [] : this.#listsOf(id);
    for (const list of lists)
      if (!(await this.#isRooted(sql, list, id)))
        return `${this.#nameOf(list)} does not give its root: an account or an amount in it was changed`;
    const committed = this.#committed.get(id);
    // Without credits nothing can be paid: the check of the amounts covers it.
    if (committed === undefined) return lists.length === 0 ? undefined : 'the lists that credit it do not have it';
    if (!committed.equals(payload)) return 'its payload was changed';
    this.#passed.add(id);
    return undefined;
  }

  #listsOf(id: number): number[] {
    const newest = this.#credits.get(id)?.list;
    return newest === undefined ? [] : [...new Set([this.#first.get(id) ?? newest, newest])];
  }

  #nameOf(list: number): string {
    return list === NOTE ? `the note of all credits through list ${this.#note}` : `credit list ${list}`;
  }

  async #isRooted(sql: Transaction, list: number, account: number): Promise<boolean> {
    const known = this.#rooted.get(list);
    // If an account was edited when the list was checked, and has been corrected since, the list is checked again.
    if (known !== undefined && (!known || this.#committed.has(account))) return known;
    const isRooted = await this.#proves(sql, list);
    this.#rooted.set(list, isRooted);
    return isRooted;
  }

  /**
   * Whether a list matches its root with the payloads its accounts were created with, or with their current ones: so an
   * edit in one table affects only one account.
   */
  async #proves(sql: Transaction, list: number): Promise<boolean> {
    const [row] =
      list === NOTE
        ? await sql<Committing[]>`select root, totals as credits from credit_totals where list_id = ${this.#note}`
        : await sql<Committing[]>`select root, credits from credit_lists where id = ${list}`;
    const credits = attempt(() => unpackCredits(row?.credits ?? Buffer.alloc(0)));
    if (row === undefined || !credits.ok) return false;
    const ids = credits.value.map(({ accountId }) => accountId);
    const accounts = await sql<{ id: number; payload: Buffer; name: Buffer }[]>`select a.id, a.payload,
        coalesce(n.payload, a.payload) as name
      from accounts a left join account_names n on n.account_id = a.id where a.id = any(${ids}::int[])`;
    const isOne = accounts.every(({ payload, name }) => name.equals(payload));
    for (const of of isOne ? (['name'] as const) : (['name', 'payload'] as const)) {
      const payloads = new Map(accounts.map((account) => [account.id, account[of]]));
      const leaves = credits.value.map(({ accountId, value }) => ({
        key: payloads.get(accountId) ?? new Uint8Array(0),
        value,
      }));
      const tree = await treeOf(leaves);
      if (tree === undefined || !equalBytes(tree.root.hash, row.root)) continue;
      for (const { id, payload, name } of accounts)
        if (name.equals(payload) && !this.#committed.has(id)) this.#committed.set(id, payload);
      return true;
    }
    return false;
  }

  /** Reads lists that are new since the last call, and from time to time those that did not add up. */
  async #readLists(sql: Transaction): Promise<void> {
    if (this.#through === undefined) await this.#readNote(sql);
    const isRetry = this.#now() >= this.#retryAt;
    if (isRetry) {
      this.#retryAt = this.#now() + RETRY_MILLIS;
      for (const [list, isRooted] of this.#rooted) if (!isRooted) this.#rooted.delete(list);
    }
    const again = isRetry ? [...this.#broken.keys()] : [];
    for await (const list of listsAfter(sql, this.#through ?? 0, { again })) {
      this.#through = Math.max(this.#through ?? 0, list.id);
      const { credits, addsUp } = creditsOfList(list);
      if (addsUp) {
        this.#broken.delete(list.id);
        addCredits(this.#credits, list.id, credits);
        for (const { accountId } of credits) if (!this.#first.has(accountId)) this.#first.set(accountId, list.id);
      } else this.#broken.set(list.id, new Set(credits.map(({ accountId }) => accountId)));
    }
  }

  async #readNote(sql: Transaction): Promise<void> {
    const { through, rows, wrong } = await readTotals(sql);
    for (const list of wrong)
      this.#log?.error('the note of all credits does not add up: an older one is taken', { list });
    addCredits(this.#credits, NOTE, rows);
    for (const { accountId } of rows) this.#first.set(accountId, NOTE);
    this.#note = through;
    this.#through = through;
  }
}
