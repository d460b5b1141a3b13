/** Blocks, slices, credit lists and payments, page by page. */
import type { Sql } from '../../database/connect.ts';
import { SERVICES } from '../../journal/journal-record.ts';
import type {
  BlockDocument,
  BlocksDocument,
  LeaderDocument,
  LeadersDocument,
  PaymentDocument,
  PaymentsDocument,
  PoolBlock,
} from '../documents.ts';
import { type Page, pageOf, readTimeCursor } from '../keyset.ts';
import { ratio } from '../public/pool-view.ts';

type BlockRow = {
  block_id: Buffer;
  service: number;
  finder: string;
  worker: string;
  anchor_height: bigint;
  slice: number;
  target_work: string;
  effort_work: string;
  micros: string;
  state: string;
  reason: string | null;
  reward: bigint | null;
  reward_transaction: Buffer | null;
  reward_output: number | null;
  settled_height: bigint | null;
  credit_list: number | null;
};

const blockDocument = (row: BlockRow): PoolBlock => ({
  block_id: row.block_id.toString('hex'),
  service: SERVICES[row.service] as PoolBlock['service'],
  anchor_height: Number(row.anchor_height),
  slice: row.slice,
  found_millis: Math.floor(Number(row.micros) / 1000),
  finder: row.finder,
  worker: row.worker,
  state: row.state as PoolBlock['state'],
  reason: row.reason,
  effort: ratio(BigInt(row.effort_work), BigInt(row.target_work)),
  reward: row.reward === null ? null : String(row.reward),
  credited: row.credit_list !== null,
});

/** A payout and one of its accounts. */
const PAYMENT_KEY = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d{1,9}$/;

export type BlockFilter = {
  readonly service: number | undefined;
  readonly state: string | undefined;
  readonly finder: string | undefined;
};

const LEADERS = 10;

export class LedgerView {
  readonly #sql: Sql;

  constructor(dependencies: { sql: Sql }) {
    this.#sql = dependencies.sql;
  }

  #blockRows(where: ReturnType<Sql>, limit: number) {
    return this.#sql<BlockRow[]>`select b.block_id, b.service, a.address as finder, w.name as worker, b.anchor_height,
        b.slice, b.target_work, b.effort_work, (extract(epoch from b.found_at) * 1000000)::bigint::text as micros, b.state,
        b.reason, b.reward, b.reward_transaction, b.reward_output, b.settled_height, b.credit_list
      from (select * from blocks ${where} order by found_at desc, block_id desc limit ${limit}) b
      join accounts a on a.id = b.account_id join workers w on w.id = b.worker_id
      order by b.found_at desc, b.block_id desc`;
  }

  async blocks(page: Page, filter: BlockFilter): Promise<BlocksDocument> {
    const sql = this.#sql;
    const from = readTimeCursor(page.cursor, /^[0-9a-f]{96}$/);
    const after =
      from === undefined
        ? sql`where true`
        : sql`where (found_at, block_id) < (to_timestamp(${from.micros}::numeric / 1000000), decode(${from.key}, 'hex'))`;
    const service = filter.service === undefined ? sql`` : sql`and service = ${filter.service}`;
    const state = filter.state === undefined ? sql`` : sql`and state = ${filter.state}`;
    const finder =
      filter.finder === undefined
        ? sql``
        : sql`and account_id = coalesce((select id from accounts where address = ${filter.finder}), -1)`;
    const rows = await this.#blockRows(sql`${after} ${service} ${state} ${finder}` as never, page.limit + 1);
    const { rows: shown, more } = pageOf(rows, page.limit, (row) => `${row.micros}-${row.block_id.toString('hex')}`);
    return { api_version: 1, blocks: shown.map(blockDocument), ...more };
  }

  async block(blockId: string): Promise<BlockDocument | undefined> {
    const [row] = await this.#blockRows(this.#sql`where block_id = decode(${blockId}, 'hex')` as never, 1);
    return row === undefined ? undefined : { api_version: 1, ...blockDocument(row) };
  }

  /** Those that found most blocks since then. */
  async leaders(sinceMillis: number): Promise<LeadersDocument> {
    const rows = await this.#sql<LeaderDocument[]>`select a.address, b.blocks, b.reward, b.luckiest from
        (select account_id, count(*)::int as blocks, coalesce(sum(reward), 0)::text as reward,
          round(min(effort_work / target_work), 4)::float8 as luckiest
          from blocks where found_at > ${new Date(sinceMillis)} group by account_id
          order by blocks desc, account_id limit ${LEADERS}) b
      join accounts a on a.id = b.account_id order by b.blocks desc, b.account_id`;
    return { api_version: 1, leaders: rows.map((row) => ({ ...row })) };
  }

  /** One row for each recipient; all of them, or those of one address. */
  async payments(page: Page, address: string | undefined): Promise<PaymentsDocument> {
    const sql = this.#sql;
    const from = readTimeCursor(page.cursor, PAYMENT_KEY);
    const [id, account] = (from?.key ?? '').split(/-(?=\d+$)/);
    const after =
      from === undefined
        ? sql`true`
        : sql`(p.created_at, p.id, i.account_id) < (to_timestamp(${from.micros}::numeric / 1000000), ${id as string}::uuid,
            ${Number(account ?? 0)})`;
    const whose =
      address === undefined
        ? sql``
        : sql`and i.account_id = coalesce((select id from accounts where address = ${address}), -1)`;
    const rows = await sql<PaymentRow[]>`select p.id, p.state, p.transaction_id, p.final_height, i.account_id, i.amount,
        a.address, (extract(epoch from p.created_at) * 1000000)::bigint::text as micros
      from payouts p join payout_items i on i.payout_id = p.id join accounts a on a.id = i.account_id
      where ${after} ${whose} order by p.created_at desc, p.id desc, i.account_id desc limit ${page.limit + 1}`;
    const { rows: shown, more } = pageOf(rows, page.limit, (row) => `${row.micros}-${row.id}-${row.account_id}`);
    return { api_version: 1, payments: shown.map(paymentDocument), ...more };
  }

  async paymentsOf(payoutId: string): Promise<PaymentDocument[]> {
    const rows = await this.#sql<PaymentRow[]>`select p.id, p.state, p.transaction_id, p.final_height, i.account_id,
        i.amount, a.address, (extract(epoch from p.created_at) * 1000000)::bigint::text as micros
      from payouts p join payout_items i on i.payout_id = p.id join accounts a on a.id = i.account_id
      where p.id = ${payoutId}::uuid order by i.account_id`;
    return rows.map(paymentDocument);
  }
}

type PaymentRow = {
  id: string;
  state: string;
  transaction_id: Buffer | null;
  final_height: bigint | null;
  account_id: number;
  amount: bigint;
  address: string;
  micros: string;
};

const paymentDocument = (row: PaymentRow): PaymentDocument => ({
  payout_id: row.id,
  state: row.state as PaymentDocument['state'],
  address: row.address,
  amount: String(row.amount),
  transaction_id: row.transaction_id?.toString('hex') ?? null,
  created_millis: Math.floor(Number(row.micros) / 1000),
  final_height: row.final_height === null ? null : Number(row.final_height),
});
