/**
 * The nodes' statements about one block's reward (books rule 15): they must agree. A node that is unavailable or behind
 * is waited for a while, and then left out.
 */
import type { BlockDocument } from '../../protocol/api/documents.ts';
import { fromHex } from '../../protocol/bytes.ts';
import type { Claim } from '../books/reward-check.ts';

/** A node that can be asked for blocks. */
export interface BlockSource {
  headHeight(): Promise<number>;
  block(blockId: string): Promise<BlockDocument | undefined>;
}
export type Witness = BlockSource & { readonly name: string };

export type Statement =
  | { readonly kind: 'paid'; readonly claim: Claim; readonly payout: string; readonly anchorHeight: number }
  /** The cut that would have paid the block is final, and did not pay it. */
  | { readonly kind: 'unpaid' }
  | { readonly kind: 'silent'; readonly reason: string };

/** `dueHeight`: the cut that closes the block's window. */
export async function statementOf(source: BlockSource, blockId: string, dueHeight: number): Promise<Statement> {
  const document = await source.block(blockId);
  const reward = document?.reward;
  if (document !== undefined && reward?.state === 'paid') {
    // A reward of not one atom has no output, and credits nothing.
    if (reward.amount === null || reward.outpoint === null) return { kind: 'unpaid' };
    const claim = {
      blockId: fromHex(blockId),
      transactionId: fromHex(reward.outpoint.transaction_id),
      outputIndex: reward.outpoint.output_index,
      amount: BigInt(reward.amount),
      height: reward.paid_height ?? dueHeight,
    };
    return { kind: 'paid', claim, payout: document.payout, anchorHeight: document.anchor_height };
  }
  const height = await source.headHeight();
  return height < dueHeight ? { kind: 'silent', reason: `is at cut ${height}` } : { kind: 'unpaid' };
}

export type Said = { readonly name: string; readonly statement: Statement };

export type Agreement =
  | { readonly kind: 'agreed'; readonly statement: Statement; readonly voices: number }
  | { readonly kind: 'waiting'; readonly names: readonly string[] }
  | { readonly kind: 'disagreed'; readonly said: string };

const show = ({ name, statement }: Said): string =>
  `${name}: ${statement.kind === 'paid' ? `${statement.claim.amount} atoms` : 'nothing'}`;

/** `isPatient`: nodes without an answer are still waited for. The first is the node that the books follow. */
export function agreementOf(said: readonly Said[], isPatient: boolean): Agreement {
  const silent = said.filter(({ statement }) => statement.kind === 'silent');
  const spoken = said.filter(({ statement }) => statement.kind !== 'silent');
  const [first] = spoken;
  const other = spoken.find((each) => first !== undefined && !isSame(first.statement, each.statement));
  if (first !== undefined && other !== undefined) return { kind: 'disagreed', said: `${show(first)}, ${show(other)}` };
  const isFirstSilent = said[0]?.statement.kind === 'silent';
  if (first === undefined || isFirstSilent || (isPatient && silent.length > 0))
    return { kind: 'waiting', names: silent.map(({ name }) => name) };
  return { kind: 'agreed', statement: first.statement, voices: spoken.length };
}

function isSame(a: Statement, b: Statement): boolean {
  if (a.kind !== 'paid' || b.kind !== 'paid') return a.kind === b.kind;
  const text = ({ claim, payout }: typeof a) =>
    [claim.amount, claim.height, claim.outputIndex, claim.transactionId, payout].join('/');
  return text(a) === text(b);
}
