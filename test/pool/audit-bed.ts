/** Books with everything in them that an audit looks at, in a real PostgreSQL, and a node that tells what they held when they were honest. */
import { extranonceOf, ownerBytes } from '../../bridge/session/extranonce.ts';
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { expireBlocks, recordPaid } from '../../pool/books/rewards.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { markFinalized, markSubmitted, markSubmitting, reservePayout } from '../../pool/payout/payout-states.ts';
import { formatAddress } from '../../protocol/address.ts';
import { SOLO_MARK } from '../../protocol/books/block-service.ts';
import { commitmentPayload } from '../../protocol/books/books-commitment.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { blockRecord as block, shareRecord as share } from './book-records.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from './books-bed.ts';

const MINERS = 6;
export const POOL = formatAddress(account('pool'), 'development');
const TARGET = toHex(targetToBytes(targetOfWork(1000n)));
const HEIGHT = 200;

export async function pay(books: BooksBed, name: string, amount: bigint, anchor: number): Promise<void> {
  const blockId = pattern(name, 48);
  const transactionId = fromHex(rewardTransaction(toHex(blockId)));
  await books.fenced((tx) => recordPaid(tx, { blockId, transactionId, outputIndex: 0, amount, height: anchor + 96 }));
}

async function payOut(books: BooksBed, id: string, height: number): Promise<void> {
  await books.fenced(async (tx) => {
    await reservePayout(tx, id, { minimum: 1n, maxRecipients: 2 });
    await markSubmitting(tx, id, { prefix: 'payout-', requestTable: 'table', height: 1 });
    await markSubmitted(tx, id, toHex(pattern(`payment ${id}`, 48)), 1_000n);
    await markFinalized(tx, id, height);
  });
}

/** Whose all blocks of a service are. */
export const ownerOfService = (service: number): Uint8Array<ArrayBuffer> =>
  ownerBytes({ bootId: pattern('boot', 8), thread: 1 | (service === 0 ? 0 : SOLO_MARK), connection: 1 });
const extranonceOfService = (service: number): string => toHex(extranonceOf('', ownerOfService(service), 0));

type Change = Awaited<ReturnType<LedgerReads['addressChanges']>>['changes'][number];

/** A node that tells what the books hold now, and has read up to a cut. */
export async function ledgerOf(sql: Sql, indexed: number): Promise<LedgerReads> {
  const blocks = await sql<
    { block_id: Buffer; reward: bigint; settled_height: bigint; service: number }[]
  >`select block_id, reward,
    settled_height, service from blocks where state = 'paid'`;
  const extranonces = new Map(blocks.map((row) => [row.block_id.toString('hex'), extranonceOfService(row.service)]));
  const payouts = await sql<
    {
      transaction_id: Buffer;
      fee: bigint;
      final_height: bigint;
      address: string;
      amount: bigint;
      number: bigint;
      books_slice: number;
      books_head: Buffer;
    }[]
  >`
    select p.transaction_id, p.fee, p.final_height, a.address, i.amount, p.number, p.books_slice, p.books_head from payouts p
    join payout_items i on i.payout_id = p.id join accounts a on a.id = i.account_id where p.state = 'finalized'`;
  const rewards = blocks.map((row) => ({
    finalized_height: Number(row.settled_height),
    address: POOL,
    kind: 'received' as const,
    source: 'work_reward' as const,
    outpoint: { transaction_id: rewardTransaction(row.block_id.toString('hex')), output_index: 0 },
    amount: String(row.reward),
    transaction_id: rewardTransaction(row.block_id.toString('hex')),
  }));
  const payments = payouts.map((row) => ({
    finalized_height: Number(row.final_height),
    address: row.address,
    kind: 'received' as const,
    source: 'regular' as const,
    outpoint: { transaction_id: row.transaction_id.toString('hex'), output_index: 0 },
    amount: String(row.amount),
    transaction_id: row.transaction_id.toString('hex'),
    fee: String(row.fee),
    payload: commitmentPayload({
      number: Number(row.number),
      slice: row.books_slice,
      head: row.books_head.toString('hex'),
    }),
  }));
  const byTransaction = Object.groupBy(payments, (payment) => payment.transaction_id);
  const order = [...new Set(payments.map((payment) => payment.transaction_id))].sort(
    (a, b) => (byTransaction[a]?.[0]?.finalized_height ?? 0) - (byTransaction[b]?.[0]?.finalized_height ?? 0),
  );
  /** Each payout spends all that is at the pool's address, and the rest returns there. */
  const own: Change[] = [];
  const documents = new Map<string, Awaited<ReturnType<LedgerReads['cutTransactions']>>['transactions'][number]>();
  let held: Change[] = rewards;
  for (const transaction_id of order) {
    const paid = byTransaction[transaction_id] ?? [];
    const { finalized_height = 0, fee = '0', payload = '' } = paid[0] ?? {};
    const sum = (list: readonly { amount: string }[]) => list.reduce((total, { amount }) => total + BigInt(amount), 0n);
    const change = String(sum(held) - sum(paid) - BigInt(fee));
    own.push(...held.map((each) => ({ ...each, finalized_height, kind: 'spent' as const, transaction_id })));
    const outputs = [...paid.map(({ address, amount }) => ({ address, amount })), { address: POOL, amount: change }];
    documents.set(transaction_id, {
      transaction_id,
      outcome: 'finalized',
      fee,
      payload_hex: payload,
      outputs,
      inputs: held.map(({ outpoint, amount }) => ({ address: POOL, amount, outpoint })),
    } as never);
    const returned = {
      finalized_height,
      address: POOL,
      kind: 'received' as const,
      source: 'regular' as const,
      outpoint: { transaction_id, output_index: paid.length },
      amount: change,
      transaction_id,
    };
    own.push(returned);
    held = [returned];
  }
  return {
    addressChanges: async ({
      addresses,
      after_height: after,
    }: {
      addresses: readonly string[];
      after_height: number;
    }) => {
      // As a node refuses it.
      if (after < 0) throw new Error('after_height must be at least 0');
      return {
        changes: [...rewards, ...payments, ...own]
          .filter((change) => addresses.includes(change.address) && change.finalized_height > after)
          .sort((a, b) => a.finalized_height - b.finalized_height),
        indexed_height: indexed,
      };
    },
    cutTransactions: async ({ height }: { height: number }) => ({
      transactions: [...documents]
        .filter(([id]) => byTransaction[id]?.[0]?.finalized_height === height)
        .map(([, document]) => document),
    }),
    cuts: async ({ before }: { before: number }) => ({ cuts: [{ height: before - 1, target: TARGET }] }),
    block: async ({ id }: { id: string }) => ({ extranonce: extranonces.get(id) ?? '00' }),
    nodeSync: async () => ({}),
  } as unknown as LedgerReads;
}

/** Books of five slices, with rewards, lists and two payouts, and the ledger that goes with them. `paidAt`: the cut of the first payout; `besides`: what else happens in each slice. */
export async function openAuditBed(
  paidAt = 150,
  besides: (books: BooksBed, slice: number) => Promise<void> = async () => undefined,
): Promise<{ books: BooksBed; ledger: LedgerReads }> {
  const books = await openBooks();
  const { sql } = books;
  await books.height(0);
  for (let slice = 0; slice < 5; slice++) {
    for (const service of ['pplns', 'solo'] as const)
      await books.take(
        [...Array(MINERS).keys()]
          .filter((miner) => (miner + slice) % 3 !== 0)
          .map((miner) => share(service, miner, BigInt(100 + 37 * miner + 11 * slice))),
      );
    await besides(books, slice);
    const height = slice * SLICE_CUTS;
    await books.take([
      block('pplns', `first ${slice}`, height, slice),
      block('pplns', `second ${slice}`, height + 1, slice + 1),
      block('solo', `solo ${slice}`, height, slice % MINERS),
      block('pplns', `lost ${slice}`, height, slice),
    ]);
    await books.height((slice + 1) * SLICE_CUTS);
  }
  // Nobody works after that.
  await books.height(HEIGHT);
  for (let slice = 0; slice < 5; slice++) {
    await pay(books, `first ${slice}`, 1_000_003n + BigInt(slice), slice * SLICE_CUTS);
    await pay(books, `second ${slice}`, 777_000n, slice * SLICE_CUTS + 1);
    await pay(books, `solo ${slice}`, 5_000_001n, slice * SLICE_CUTS);
  }
  await books.fenced((tx) => expireBlocks(tx, HEIGHT, 96));
  await books.fenced((tx) => makeCredits(tx, new ClosedWork(), { sliceCuts: SLICE_CUTS }, HEIGHT));
  await sql`insert into settings values ('chain_height', ${String(HEIGHT)}), ('pool_address', ${POOL})`;
  await payOut(books, '00000000-0000-4000-8000-000000000001', paidAt);
  await payOut(books, '00000000-0000-4000-8000-000000000002', paidAt + 1);
  return { books, ledger: await ledgerOf(sql, Math.max(HEIGHT, paidAt + 1)) };
}
