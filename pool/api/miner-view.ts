/** One miner: its balances, workers, payments, credits and charts; and the list of miners by hash rate. */
import { parseAddress } from '../../protocol/address.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { unpackCredits } from '../books/packed.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal-record.ts';
import type { RateBoard } from '../stats/rates.ts';
import { ApiRefusal } from './api-error.ts';
import { type Page, pageOf, readCursor } from './keyset.ts';
import { type PaymentRow, paymentDocument } from './ledger-view.ts';
import { rateDocument } from './pool-view.ts';

export type Account = {
  readonly id: number;
  readonly address: string;
  readonly payload: Buffer;
  readonly balance: bigint;
  readonly inFlight: bigint;
  readonly paid: bigint;
  readonly payoutMin: bigint | null;
};

type WorkerRow = {
  id: number;
  service: number;
  name: string;
  accepted: bigint;
  work: string;
  last_millis: string | null;
};

/** Credit lists looked through for one page of a miner's credits. */
const CREDIT_LISTS = 48;

export class MinerView {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #rates: RateBoard;
  /** Addresses never change their id. */
  readonly #addresses = new Map<number, string>();

  constructor(options: { network: NetworkName }, dependencies: { sql: Sql; rates: RateBoard }) {
    this.#network = options.network;
    this.#sql = dependencies.sql;
    this.#rates = dependencies.rates;
  }

  async account(address: string): Promise<Account> {
    try {
      parseAddress(address, this.#network);
    } catch (error) {
      if (error instanceof ProtocolError) throw new ApiRefusal('bad_request', error.message);
      throw error;
    }
    const [row] = await this.#sql<
      { id: number; payload: Buffer; balance: bigint; in_flight: bigint; paid: bigint; payout_min: bigint | null }[]
    >`select id, payload, balance, in_flight, paid, payout_min from accounts where address = ${address}`;
    if (row === undefined) throw new ApiRefusal('not_found', 'this address has not mined here');
    return {
      id: row.id,
      address,
      payload: row.payload,
      balance: row.balance,
      inFlight: row.in_flight,
      paid: row.paid,
      payoutMin: row.payout_min,
    };
  }

  /** By falling rate of the last hour; a cursor is a rank, since the whole list is in memory. */
  async miners(page: Page) {
    const from = Number(readCursor(page.cursor)?.micros ?? 0);
    const ranking = this.#rates.ranking.filter((row) => row.rates.day > 0);
    const shown = ranking.slice(from, from + page.limit);
    await this.#learnAddresses(shown.map((row) => row.accountId));
    return {
      miners: shown.map((row, i) => ({
        rank: from + i + 1,
        address: this.#addresses.get(row.accountId) ?? '',
        workers: row.workers,
        hash_rate: rateDocument(row.rates),
      })),
      total: ranking.length,
      next_cursor: from + page.limit < ranking.length ? `${from + page.limit}-0` : null,
    };
  }

  async #learnAddresses(ids: readonly number[]): Promise<void> {
    const unknown = ids.filter((id) => !this.#addresses.has(id));
    if (unknown.length === 0) return;
    const rows = await this.#sql<{ id: number; address: string }[]>`select id, address from accounts
      where id = any(${unknown}::int[])`;
    for (const row of rows) this.#addresses.set(row.id, row.address);
  }

  async miner(address: string) {
    const account = await this.account(address);
    const [counts] = await this.#sql<{ workers: number; last_millis: string | null; blocks: number }[]>`select
      count(*)::int as workers, (extract(epoch from max(last_share_at)) * 1000)::bigint::text as last_millis,
      (select count(*)::int from blocks b join workers f on f.id = b.worker_id where f.account_id = ${account.id}) as blocks
      from workers where account_id = ${account.id}`;
    return {
      address,
      balance_atoms: String(account.balance),
      in_flight_atoms: String(account.inFlight),
      paid_atoms: String(account.paid),
      payout_min_atoms: account.payoutMin === null ? null : String(account.payoutMin),
      hash_rate: rateDocument(this.#rates.account(account.id)),
      workers: counts?.workers ?? 0,
      blocks_found: counts?.blocks ?? 0,
      last_share_millis: counts?.last_millis == null ? null : Number(counts.last_millis),
    };
  }

  async workers(address: string, page: Page) {
    const account = await this.account(address);
    const from = Number(readCursor(page.cursor)?.micros ?? 0);
    const rows = await this.#sql<WorkerRow[]>`select id, service, name, accepted, work,
        (extract(epoch from last_share_at) * 1000)::bigint::text as last_millis
      from workers where account_id = ${account.id} and id > ${from} order by id limit ${page.limit + 1}`;
    const { rows: shown, next_cursor } = pageOf(rows, page.limit, (row) => `${row.id}-0`);
    return {
      workers: shown.map((row) => ({
        worker_id: row.id,
        name: row.name,
        service: SERVICES[row.service],
        accepted: Number(row.accepted),
        work: row.work,
        hash_rate: rateDocument(this.#rates.worker(row.id)),
        last_share_millis: row.last_millis === null ? null : Number(row.last_millis),
      })),
      next_cursor,
    };
  }

  async payments(address: string, page: Page) {
    const account = await this.account(address);
    const from = readCursor(page.cursor);
    const after =
      from === undefined
        ? this.#sql`true`
        : this.#sql`(p.created_at, p.id) < (to_timestamp(${from.micros}::numeric / 1000000), ${from.key}::uuid)`;
    const rows = await this.#sql<PaymentRow[]>`select p.id, p.state, p.transaction_id, p.fee, p.final_height,
        (extract(epoch from p.created_at) * 1000000)::bigint::text as micros, i.amount
      from payout_items i join payouts p on p.id = i.payout_id where i.account_id = ${account.id} and ${after}
      order by p.created_at desc, p.id desc limit ${page.limit + 1}`;
    const { rows: shown, next_cursor } = pageOf(rows, page.limit, (row) => `${row.micros}-${row.id}`);
    return { payments: shown.map(paymentDocument), next_cursor };
  }

  /** What the account got of the latest credit lists; each can be proven. */
  async credits(address: string, page: Page) {
    const account = await this.account(address);
    const before = Number(readCursor(page.cursor)?.micros ?? 2_147_483_647);
    const rows = await this.#sql<
      { id: number; service: number; slice: number; credits: Buffer; credited: bigint; made_millis: string }[]
    >`select id, service, slice, credits, credited, (extract(epoch from made_at) * 1000)::bigint::text as made_millis
      from credit_lists where id < ${before} order by id desc limit ${CREDIT_LISTS + 1}`;
    const { rows: shown, next_cursor } = pageOf(rows, CREDIT_LISTS, (row) => `${row.id}-0`);
    const credits = shown.flatMap((row) => {
      const amount = unpackCredits(row.credits).find((credit) => credit.accountId === account.id)?.value;
      return amount === undefined
        ? []
        : [
            {
              service: SERVICES[row.service],
              slice: row.slice,
              amount_atoms: String(amount),
              list_atoms: String(row.credited),
              made_millis: Number(row.made_millis),
            },
          ];
    });
    return { credits, next_cursor };
  }

  async workerId(address: string, service: number, name: string): Promise<number> {
    const account = await this.account(address);
    const [row] = await this.#sql<{ id: number }[]>`select id from workers
      where account_id = ${account.id} and service = ${service} and name = ${name}`;
    if (row === undefined) throw new ApiRefusal('not_found', 'this miner has no such worker');
    return row.id;
  }
}
