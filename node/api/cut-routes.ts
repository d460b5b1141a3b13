/** Routes about cuts and work blocks. */

import type { BlockDocument, BlockReward, CutSummary, TransactionDocument } from '../../protocol/api/documents.ts';
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { decodeHeader } from '../../protocol/ledger/header.ts';
import { decodeExtranonce } from '../../protocol/ledger/tag.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import {
  decodeTransaction,
  type TransactionBody,
  transactionIdOfWire,
} from '../../protocol/transactions/transaction.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import { cutReference, workRewards } from '../events.ts';
import type { BlockRecord, CutRecord } from '../full-node.ts';
import type { IndexedTransaction } from '../index/index-reader.ts';
import { addressText, changeDocument } from './address-routes.ts';
import type { ApiContext, Handlers } from './api-context.ts';
import { refusal } from './api-error.ts';
import { makeCursor, readCursor } from './cursor.ts';

const targetHex = (target: bigint): string => nativeHex(targetToBytes(target));

function cutAt(context: ApiContext, height: number): CutRecord {
  if (height < context.node.chain.historyFrom())
    throw refusal('cut_pruned', 'this node began with a snapshot of a later cut; ask one that has the whole chain');
  const cut = context.node.chain.cut(height);
  if (cut === undefined) throw refusal('cut_unknown', `no finalized cut has the height ${height}`);
  return cut;
}

const cutSummary = (cut: CutRecord): CutSummary => ({
  ...cutReference(cut),
  previous_id: nativeHex(cut.header.previousId),
  finalized_at_millis: cut.header.timestampMillis,
  registered_work: cut.blockIds.length,
  executed_work: cut.executedBlocks,
  transactions: cut.transactionCount,
  subsidy: cut.subsidy.toString(),
  fees: cut.fees.toString(),
  target: targetHex(cut.target),
});

function rewardDocument(block: BlockRecord): BlockReward {
  const { reward } = block;
  const none = { amount: null, work_amount: null, fee_amount: null, outpoint: null, paid_height: null };
  if (reward.state !== 'paid') return { state: reward.state, ...none };
  const { outpoint } = reward.reward;
  return {
    state: 'paid',
    amount: reward.reward.amount.toString(),
    work_amount: reward.reward.subsidy.toString(),
    fee_amount: reward.reward.fees.toString(),
    outpoint:
      outpoint === undefined
        ? null
        : { transaction_id: nativeHex(outpoint.transactionId), output_index: outpoint.outputIndex },
    paid_height: reward.height,
  };
}

function blockFields(
  context: ApiContext,
  block: BlockRecord,
): Omit<BlockDocument, 'api_version' | 'finalized_height' | 'transactions' | 'header_hex'> {
  const header = decodeHeader(block.header);
  const registered = block.registeredHeight === undefined ? undefined : context.node.chain.cut(block.registeredHeight);
  return {
    block_id: nativeHex(block.id),
    anchor_height: block.anchorHeight,
    anchor_id: nativeHex(header.anchorId),
    registration_window_end: block.anchorHeight + REGISTRATION_WINDOW,
    timestamp_millis: header.timestampMillis,
    target: targetHex(header.target),
    nonce: nativeHex(block.header.subarray(block.header.length - 8)),
    payout: addressText(context, block.payout),
    extranonce: nativeHex(block.extranonce),
    tag: decodeExtranonce(block.extranonce).tag,
    parents: block.parents.map(nativeHex),
    registered_cut: registered === undefined ? null : cutReference(registered),
    reward: rewardDocument(block),
  };
}

/** A cursor inside one cut is the place of the next entry. */
function placeIn(scope: string, text: string | undefined): number {
  if (text === undefined) return 0;
  const place = readCursor(scope, text, 4);
  if (place === undefined) throw refusal('bad_cursor', 'the cursor is not of this query', { field: 'cursor' });
  return new DataView(place.buffer, place.byteOffset, 4).getUint32(0);
}

function cursorAt(scope: string, place: number): string {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, place);
  return makeCursor(scope, bytes);
}

const outpointText = (transaction: string, index: number): string => `${transaction}:${index}`;

/**
 * Bytes of block bodies that one page reads, but at least one body: a transaction is read out of the block that carried it, and each of a page may be
 * in a block of its own, which may be full of copies of other transactions.
 */
const PAGE_BODY_BYTES = 4 * 1024 * 1024;

type Carried = { readonly entry: IndexedTransaction; readonly body: TransactionBody };

/** The bytes by the block that carried them: another block may carry the same identifier with other witnesses. Each block is read once. */
function carriedBy(context: ApiContext, entries: readonly IndexedTransaction[]): Carried[] {
  const blocks = new Map<string, readonly Bytes[]>();
  const page: Carried[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const name = nativeHex(entry.blockId);
    let wires = blocks.get(name);
    if (wires === undefined) {
      const body = context.node.chain.blockBody(entry.blockId);
      if (body === undefined)
        throw refusal('cut_pruned', 'this node has deleted the transactions of this cut; ask one that keeps them');
      bytes += body.length;
      if (blocks.size > 0 && bytes > PAGE_BODY_BYTES) break;
      wires = decodeBody(body).transactions;
      blocks.set(name, wires);
    }
    page.push({ entry, body: decodeTransaction(wires[entry.index] as Bytes).body });
  }
  return page;
}

/**
 * Outputs spent by the transactions of a page. The transactions are consecutive, and so are their changes; those of the
 * rest of the cut are not read.
 */
async function spentBy(context: ApiContext, height: number, page: readonly Carried[]) {
  const executed = page.filter(({ entry }) => entry.outcome === 'finalized');
  const inputs = executed.reduce((sum, { body }) => sum + body.inputs.length, 0);
  const spent = new Map<string, { address: string; amount: string }>();
  if (executed[0] === undefined) return spent;
  for (const change of await context.index.changes(height, executed[0].entry.spentAt, inputs))
    spent.set(outpointText(nativeHex(change.outpoint.transactionId), change.outpoint.outputIndex), {
      address: addressText(context, change.address),
      amount: change.amount.toString(),
    });
  return spent;
}

async function transactionDocuments(
  context: ApiContext,
  height: number,
  page: readonly Carried[],
): Promise<TransactionDocument[]> {
  const spent = await spentBy(context, height, page);
  return page.map(({ entry, body }) => ({
    transaction_id: nativeHex(entry.id),
    block_id: nativeHex(entry.blockId),
    finalized_height: height,
    outcome: entry.outcome,
    fee: entry.fee.toString(),
    mass: entry.mass,
    valid_from_height: body.validFromHeight,
    valid_until_height: body.validUntilHeight,
    inputs: body.inputs.map((input) => {
      const transaction_id = nativeHex(input.transactionId);
      // A failed transaction spent nothing, and its inputs may never have existed.
      const output = spent.get(outpointText(transaction_id, input.outputIndex));
      const known = entry.outcome === 'finalized' ? output : undefined;
      return {
        outpoint: { transaction_id, output_index: input.outputIndex },
        address: known?.address ?? null,
        amount: known?.amount ?? null,
      };
    }),
    outputs: body.outputs.map((output, output_index) => ({
      output_index,
      address: addressText(context, output.address),
      amount: output.amount.toString(),
    })),
    payload_hex: nativeHex(body.payload),
  }));
}

export const cutRoutes: Pick<
  Handlers,
  'cuts' | 'cutTransactions' | 'cutChanges' | 'cutRewards' | 'recentBlocks' | 'block'
> = {
  cuts(context, { query }) {
    // The index is written with the cut, shortly before the node's head moves to it.
    const head = Math.min(context.index.height(), context.node.chain.head().height);
    const limit = query.limit ?? 20;
    const from = Math.min(head, (query.before ?? head + 1) - 1);
    const cuts: CutSummary[] = [];
    const first = context.node.chain.historyFrom();
    for (let height = from; height >= first && cuts.length < limit; height--)
      cuts.push(cutSummary(cutAt(context, height)));
    const lowest = cuts.at(-1)?.height ?? first;
    return { api_version: 1, finalized_height: head, cuts, next_before: lowest > first ? lowest : undefined };
  },

  async cutTransactions(context, { params, query }) {
    const cut = cutAt(context, params.height);
    const scope = `transactions ${params.height}`;
    const limit = query.limit ?? 20;
    const from = placeIn(scope, query.cursor);
    const entries = await context.index.transactions(params.height, from, limit + 1);
    const page = carriedBy(context, entries.slice(0, limit));
    return {
      api_version: 1,
      finalized_height: context.index.height(),
      cut: cutReference(cut),
      transactions: await transactionDocuments(context, params.height, page),
      next_cursor: entries.length > page.length ? cursorAt(scope, from + page.length) : undefined,
    };
  },

  async cutChanges(context, { params, query }) {
    const cut = cutAt(context, params.height);
    const scope = `cut changes ${params.height}`;
    const limit = query.limit ?? 1024;
    const from = placeIn(scope, query.cursor);
    const entries = await context.index.changes(params.height, from, limit + 1);
    return {
      api_version: 1,
      finalized_height: context.index.height(),
      cut: cutReference(cut),
      changes: entries.slice(0, limit).map((entry) => changeDocument(entry, addressText(context, entry.address))),
      next_cursor: entries.length > limit ? cursorAt(scope, from + limit) : undefined,
    };
  },

  cutRewards(context, { params, query }) {
    const cut = cutAt(context, params.height);
    const scope = `cut rewards ${params.height}`;
    const limit = query.limit ?? 256;
    const from = placeIn(scope, query.cursor);
    const rewards = workRewards(cut.rewards);
    return {
      api_version: 1,
      finalized_height: context.index.height(),
      cut: cutReference(cut),
      rewards: rewards.slice(from, from + limit),
      next_cursor: rewards.length > from + limit ? cursorAt(scope, from + limit) : undefined,
    };
  },

  async recentBlocks(context, { query }) {
    const { height, value } = await context.index.recentBlocks(query.limit ?? 50);
    const { chain } = context.node;
    const blocks = value.map((id) => {
      const block = chain.block(id);
      if (block === undefined) throw new Error(`the registered block ${nativeHex(id)} is not in the store`);
      return block;
    });
    return {
      api_version: 1,
      finalized_height: Math.min(height, chain.head().height),
      // The index may already contain a cut above the node's head.
      blocks: blocks
        .filter(({ registeredHeight }) => registeredHeight !== undefined)
        .map((block) => ({ ...blockFields(context, block), transactions: block.transactionCount })),
    };
  },

  block(context, { params }) {
    const block = context.node.chain.block(fromHex(params.id));
    if (block === undefined) throw refusal('block_unknown', 'this node has not seen the block');
    const body = context.node.chain.blockBody(block.id);
    return {
      api_version: 1,
      finalized_height: context.node.chain.head().height,
      ...blockFields(context, block),
      header_hex: nativeHex(block.header),
      transactions:
        body === undefined ? null : decodeBody(body).transactions.map((wire) => nativeHex(transactionIdOfWire(wire))),
    };
  },
};
