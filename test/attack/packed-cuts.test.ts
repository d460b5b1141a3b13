/** A page of a cut's transactions costs what is on the page: neither the other changes of the cut nor all the blocks that carried them. */
import { afterEach, expect, test } from 'vitest';
import type { ApiContext } from '../../node/api/api-context.ts';
import { cutRoutes } from '../../node/api/cut-routes.ts';
import type { FullNode, Head } from '../../node/full-node.ts';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { INDEX_NAME } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import type { StoreReader } from '../../node/store/cut-indexer.ts';
import type { TransactionDocument } from '../../protocol/api/documents.ts';
import { toHex } from '../../protocol/bytes.ts';
import { encodeBody, MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { Bed, payment } from '../node/bed.ts';

const PAYMENTS = 12;
const miner = developmentKey('miner').address;
let bed: Bed | undefined;
afterEach(() => bed?.close());

/** A cut whose payments have eight outputs each, every second one with two inputs. Returns its height. */
async function packedCut(): Promise<number> {
  bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  const outputs = Array.from({ length: 7 }, (_, i) => ({ address: developmentKey(`to ${i}`).address, amount: 1_000n }));
  for (let i = 0, output = 0; i < PAYMENTS; i++) {
    const spends = [bed.treasury(output++), ...(i % 2 === 0 ? [] : [bed.treasury(output++)])];
    const { status } = await bed.pay(spends, outputs);
    expect(status).not.toBe('refused');
  }
  await bed.mine(miner);
  return (await bed.seal()).header.height;
}

function counting(node: FullNode) {
  const rows = { read: 0 };
  const reader = node.chain.reader(INDEX_NAME);
  const count = <T>(found: T[]): T[] => {
    rows.read += found.length;
    return found;
  };
  const counted: StoreReader = {
    get: (key) => reader.get(key),
    range: async (...range) => count(await reader.range(...range)),
    values: async (...range) => count(await reader.values(...range)),
  };
  return { rows, index: new IndexReader(counted, () => node.chain.head().height) };
}

type Page = { readonly transactions: readonly TransactionDocument[]; readonly next_cursor?: string };

const ask = async (context: Partial<ApiContext>, height: number, query: { cursor?: string; limit?: number }) =>
  (await cutRoutes.cutTransactions(context as ApiContext, { params: { height }, query, body: {} })) as Page;

/** All pages, and the most index rows that one of them read. */
async function pages(node: FullNode, height: number, limit: number) {
  const { rows, index } = counting(node);
  const all: TransactionDocument[][] = [];
  let most = 0;
  for (let cursor: string | undefined; ; ) {
    rows.read = 0;
    const page = await ask({ node, index }, height, { limit, ...(cursor === undefined ? {} : { cursor }) });
    most = Math.max(most, rows.read);
    all.push([...page.transactions]);
    cursor = page.next_cursor;
    if (cursor === undefined) return { all, most };
  }
}

test('a page reads the changes of its own inputs alone', async () => {
  const height = await packedCut();
  const { node } = bed as Bed;
  const { all, most } = await pages(node, height, 2);
  expect(all.map(({ length }) => length)).toEqual(Array.from({ length: PAYMENTS / 2 }, () => 2));
  // Three rows of transactions, of which the last says that there is another page, and three inputs of the two.
  expect(most).toBeLessThanOrEqual(3 + 4);
  for (const { inputs, outputs, fee } of all.flat()) {
    const paid = inputs.reduce((sum, { amount }) => sum + BigInt(amount as string), 0n);
    expect(paid - outputs.reduce((sum, { amount }) => sum + BigInt(amount), 0n)).toBe(BigInt(fee));
  }
});

test('a page ends where the blocks that it reads come to too many bytes', async () => {
  const from = developmentKey(TREASURY).address;
  const outpoint = { transactionId: pattern('before', 48), outputIndex: 0 };
  const chainId = pattern('chain', 48);
  const at = { chainId, head: () => ({ height: 7 }) as Head };
  const wire = payment(at, [{ outpoint, address: from, amount: 1_000_000n, source: 'regular' }], []);
  // Every block is as large as one can be: a cut takes one transaction of it, and the others are copies.
  const copies = Math.floor((MAX_BODY_BYTES - 1_000) / (wire.length + 4));
  const body = encodeBody({
    payout: miner,
    extranonce: new Uint8Array(8),
    parents: [],
    transactions: Array<Uint8Array>(copies).fill(wire),
  });
  const entries = Array.from({ length: 64 }, (_, i) => ({
    height: 7,
    place: i,
    id: pattern(`transaction ${i}`, 48),
    blockId: pattern(`block ${i}`, 48),
    outcome: 'conflict',
    fee: 0n,
    mass: 0,
    amount: 0n,
    index: i % copies,
    spentAt: 0,
  }));
  let read = 0;
  const chain = {
    ...at,
    network: { name: 'development' },
    historyFrom: () => 0,
    cut: () => ({
      header: { height: 7, stateRoot: chainId, validatorSetId: chainId },
      cutId: chainId,
    }),
    blockBody: () => {
      read += body.length;
      return body;
    },
  };
  const index = {
    height: () => 7,
    transactions: async (_: number, place: number, limit: number) => entries.slice(place, place + limit),
  };
  const context = { node: { chain }, index } as unknown as ApiContext;
  const listed: string[] = [];
  for (let cursor: string | undefined; ; ) {
    read = 0;
    const page = await ask(context, 7, { limit: 64, ...(cursor === undefined ? {} : { cursor }) });
    expect(read).toBeLessThanOrEqual(5 * MAX_BODY_BYTES);
    listed.push(...page.transactions.map(({ transaction_id }) => transaction_id));
    cursor = page.next_cursor;
    if (cursor === undefined) break;
  }
  expect(listed).toEqual(entries.map(({ id }) => toHex(id)));
});
