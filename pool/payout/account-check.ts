/**
 * The books of a payout's recipients, audited before anything is sent (books rule 23): an account whose row does not follow from its credits and
 * payments is not paid, and the others are. Costs a few rows a payout: credit lists never change, so each is read once, when it is new.
 */
import { formatAddress } from '../../protocol/address.ts';
import { equalBytes } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import { unpackCredits } from '../books/packed.ts';
import type { Sql, Transaction } from '../database/connect.ts';

type ListRow = { id: number; reward: bigint; fee: bigint; credited: bigint; root: Buffer; credits: Buffer };
type AccountRow = {
  id: number;
  payload: Buffer;
  address: string;
  balance: bigint;
  in_flight: bigint;
  paid: bigint;
  flying: string;
  settled: string;
};

export class AccountCheck {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  /** By account: all credits, and the newest list that has one. Summed up when a list is first read: a later edit of it changes nothing here. */
  readonly #credits = new Map<number, { sum: bigint; list: number }>();
  /** Lists whose amounts do not add up, and their accounts. */
  readonly #broken = new Map<number, ReadonlySet<number>>();
  /** Address payloads that a list's root was found to commit. */
  readonly #payloads = new Map<number, Buffer>();
  readonly #rooted = new Map<number, boolean>();
  #through = 0;

  constructor(options: { readonly network: NetworkName }, dependencies: { readonly sql: Sql }) {
    this.#network = options.network;
    this.#sql = dependencies.sql;
  }

  /** Why accounts are not to be paid; those that may be are left out. */
  failures(accountIds: readonly number[]): Promise<Map<number, string>> {
    // One picture of the books: a list that is made meanwhile changes balances.
    return this.#sql.begin('isolation level repeatable read read only', (sql) => this.#failures(sql, accountIds));
  }

  async #failures(sql: Transaction, accountIds: readonly number[]): Promise<Map<number, string>> {
    await this.#readLists(sql);
    const rows = await sql<AccountRow[]>`select a.id, a.payload, a.address, a.balance, a.in_flight, a.paid,
        coalesce(sum(i.amount) filter (where p.state in ('reserved', 'submitting', 'submitted')), 0)::text as flying,
        coalesce(sum(i.amount) filter (where p.state = 'finalized'), 0)::text as settled
      from accounts a left join payout_items i on i.account_id = a.id left join payouts p on p.id = i.payout_id
      where a.id = any(${[...accountIds]}::int[]) group by a.id`;
    const found = new Map<number, string>();
    for (const id of accountIds) {
      const row = rows.find((each) => each.id === id);
      const why = row === undefined ? 'the account is gone' : ((await this.#identity(sql, row)) ?? this.#amounts(row));
      if (why !== undefined) found.set(id, why);
    }
    return found;
  }

  #amounts({ id, balance, in_flight, paid, flying, settled }: AccountRow): string | undefined {
    const broken = [...this.#broken].find(([, accounts]) => accounts.has(id))?.[0];
    if (broken !== undefined) return `credit list ${broken} does not add up`;
    const differs = (what: string, books: bigint, computed: bigint) =>
      books === computed ? undefined : `${what} is ${books} in the books and ${computed} by its credits and payouts`;
    const credited = this.#credits.get(id)?.sum ?? 0n;
    return (
      differs('in flight', in_flight, BigInt(flying)) ??
      differs('paid', paid, BigInt(settled)) ??
      differs('balance', balance, credited - BigInt(flying) - BigInt(settled))
    );
  }

  /** Who the account is: its address and its payload are one, and the payload is the one that its newest credits were committed with. */
  async #identity(sql: Transaction, { id, payload, address }: AccountRow): Promise<string | undefined> {
    const own = attempt(() => formatAddress(payload, this.#network));
    if (!own.ok || own.value !== address) return 'its address is not that of its payload';
    const known = this.#payloads.get(id);
    if (known !== undefined) return known.equals(payload) ? undefined : 'its payload was changed';
    const list = this.#credits.get(id)?.list;
    if (list === undefined || (await this.#isRooted(sql, list))) return undefined;
    return `credit list ${list} does not give its root: an account or an amount in it was changed`;
  }

  async #isRooted(sql: Transaction, id: number): Promise<boolean> {
    const known = this.#rooted.get(id);
    if (known === true) return true;
    const [row] = await sql<ListRow[]>`select root, credits from credit_lists where id = ${id}`;
    const credits = unpackCredits(row?.credits ?? Buffer.alloc(0));
    const accounts = await sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts
      where id = any(${credits.map(({ accountId }) => accountId)}::int[])`;
    const payloads = new Map(accounts.map((account) => [account.id, account.payload]));
    const tree = attempt(() =>
      sumTree(credits.map(({ accountId, value }) => ({ key: payloads.get(accountId) ?? new Uint8Array(0), value }))),
    );
    const isRooted = row !== undefined && tree.ok && equalBytes(tree.value.root.hash, row.root);
    if (isRooted) for (const [account, payload] of payloads) this.#payloads.set(account, payload);
    this.#rooted.set(id, isRooted);
    return isRooted;
  }

  /** Lists that are new since the last look, and those that did not add up then. */
  async #readLists(sql: Transaction): Promise<void> {
    const again = [...this.#broken.keys()];
    const cursor = sql<ListRow[]>`select id, reward, fee, credited, credits from credit_lists
      where id > ${this.#through} or id = any(${again}::int[]) order by id`.cursor(8);
    for await (const rows of cursor) for (const row of rows) this.#takeList(row);
  }

  #takeList({ id, reward, fee, credited, credits: packed }: ListRow): void {
    this.#through = Math.max(this.#through, id);
    const read = attempt(() => unpackCredits(packed));
    const credits = read.ok ? read.value : [];
    const sum = credits.reduce((total, { value }) => total + value, 0n);
    if (sum !== credited || reward - fee !== credited) {
      this.#broken.set(id, new Set(credits.map(({ accountId }) => accountId)));
      return;
    }
    this.#broken.delete(id);
    for (const { accountId, value } of credits) {
      const before = this.#credits.get(accountId);
      this.#credits.set(accountId, {
        sum: (before?.sum ?? 0n) + value,
        list: Math.max(before?.list ?? 0, id),
      });
    }
  }
}
