/** Blocks, slices, credit lists and payments, page by page. */
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal-record.ts';
import { type Page, pageOf, readCursor } from './keyset.ts';
import { ratio } from './pool-view.ts';

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

const blockDocument = (row: BlockRow) => ({
  block_id: row.block_id.toString('hex'),
  service: SERVICES[row.service],
  finder: row.finder,
  worker: row.worker,
  anchor_height: Number(row.anchor_height),
  slice: row.slice,
  found_millis: Math.floor(Number(row.micros) / 1000),
  state: row.state,
  reason: row.reason,
  reward_atoms: row.reward === null ? null : String(row.reward),
  reward_transaction: row.reward_transaction?.toString('hex') ?? null,
  reward_output: row.reward_output,
  settled_height: row.settled_height === null ? null : Number(row.settled_height),
  effort: ratio(BigInt(row.effort_work), BigInt(row.target_work)),
  credited: row.credit_list !== null,
});

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

  async blocks(page: Page, filter: { service: number | undefined; state: string | undefined }) {
    const sql = this.#sql;
    const from = readCursor(page.cursor);
    const after =
      from === undefined
        ? sql`where true`
        : sql`where (found_at, block_id) < (to_timestamp(${from.micros}::numeric / 1000000), decode(${from.key}, 'hex'))`;
    const service = filter.service === undefined ? sql`` : sql`and service = ${filter.service}`;
    const state = filter.state === undefined ? sql`` : sql`and state = ${filter.state}`;
    const rows = await this.#blockRows(sql`${after} ${service} ${state}` as never, page.limit + 1);
    const { rows: shown, next_cursor } = pageOf(
      rows,
      page.limit,
      (row) => `${row.micros}-${row.block_id.toString('hex')}`,
    );
    return { blocks: shown.map(blockDocument), next_cursor };
  }

  async block(blockId: string) {
    const [row] = await this.#blockRows(this.#sql`where block_id = decode(${blockId}, 'hex')` as never, 1);
    return row === undefined ? undefined : blockDocument(row);
  }

  async slices(service: number, page: Page) {
    const from = readCursor(page.cursor);
    const rows = await this.#sql<
      {
        number: number;
        window_work: string;
        opened_height: bigint;
        closed_height: bigint | null;
        total: string | null;
        root: Buffer | null;
        accounts: number | null;
        reward: bigint | null;
        fee: bigint | null;
        credited: bigint | null;
        credit_root: Buffer | null;
      }[]
    >`select s.number, s.window_work, s.opened_height, s.closed_height, s.total, s.root,
        octet_length(s.leaves) / 20 as accounts, c.reward, c.fee, c.credited, c.root as credit_root
      from slices s left join credit_lists c on c.service = s.service and c.slice = s.number
      where s.service = ${service} and s.number < ${from === undefined ? 2_147_483_647 : Number(from.micros)}
      order by s.number desc limit ${page.limit + 1}`;
    const { rows: shown, next_cursor } = pageOf(rows, page.limit, (row) => `${row.number}-0`);
    return {
      slices: shown.map((row) => ({
        slice: row.number,
        window_work: row.window_work,
        opened_height: Number(row.opened_height),
        closed_height: row.closed_height === null ? null : Number(row.closed_height),
        total_work: row.total,
        root: row.root?.toString('hex') ?? null,
        accounts: row.accounts,
        credits:
          row.credit_root === null
            ? null
            : {
                reward_atoms: String(row.reward),
                fee_atoms: String(row.fee),
                credited_atoms: String(row.credited),
                root: row.credit_root.toString('hex'),
              },
      })),
      next_cursor,
    };
  }

  async payments(page: Page) {
    const from = readCursor(page.cursor);
    const after =
      from === undefined
        ? this.#sql`true`
        : this.#sql`(created_at, id) < (to_timestamp(${from.micros}::numeric / 1000000), ${from.key}::uuid)`;
    const rows = await this.#sql<PaymentRow[]>`select p.id, p.state, p.transaction_id, p.fee, p.final_height,
        (extract(epoch from p.created_at) * 1000000)::bigint::text as micros, sum(i.amount)::bigint as amount,
        count(*)::int as recipients
      from (select * from payouts where ${after} order by created_at desc, id desc limit ${page.limit + 1}) p
      join payout_items i on i.payout_id = p.id group by p.id, p.state, p.transaction_id, p.fee, p.final_height, p.created_at
      order by p.created_at desc, p.id desc`;
    const { rows: shown, next_cursor } = pageOf(rows, page.limit, (row) => `${row.micros}-${row.id}`);
    return { payments: shown.map(paymentDocument), next_cursor };
  }
}

export type PaymentRow = {
  id: string;
  state: string;
  transaction_id: Buffer | null;
  fee: bigint | null;
  final_height: bigint | null;
  micros: string;
  amount: bigint;
  recipients?: number;
};

export const paymentDocument = (row: PaymentRow) => ({
  payment_id: row.id,
  state: row.state,
  transaction_id: row.transaction_id?.toString('hex') ?? null,
  final_height: row.final_height === null ? null : Number(row.final_height),
  created_millis: Math.floor(Number(row.micros) / 1000),
  amount_atoms: String(row.amount),
  ...(row.recipients === undefined ? {} : { recipients: row.recipients }),
});
