/** Messenger transactions that anybody may bring into a chain: put straight into a cut of the fake node, as a node would tell of them. */
import { randomBytes } from 'node:crypto';
import type { TransactionDocument } from '../../../protocol/api/transaction-documents.ts';
import type { FakeNode } from '../fake-node.ts';

export type Sending = {
  readonly from: readonly string[];
  readonly to: string;
  readonly payload: string;
  readonly amount?: bigint;
};

/** One cut with all of them; their identifiers, in the same order. */
export function bring(node: FakeNode, sendings: readonly Sending[]): string[] {
  const height = ++node.height;
  const names = sendings.map(() => randomBytes(48).toString('hex'));
  const transactions = sendings.map(
    ({ from, to, payload, amount = 1n }, i): TransactionDocument => ({
      transaction_id: names[i] as string,
      block_id: 'bb'.repeat(48),
      finalized_height: height,
      outcome: 'finalized',
      fee: '60000',
      mass: 6000,
      valid_from_height: 1,
      valid_until_height: height + 1000,
      inputs: from.map((address) => ({
        outpoint: { transaction_id: randomBytes(48).toString('hex'), output_index: 0 },
        address,
        amount: '100000',
      })),
      outputs: [{ output_index: 0, address: to, amount: String(amount) }],
      payload_hex: payload,
    }),
  );
  node.cuts[height] = {
    transactions,
    changes: transactions.map(({ transaction_id, outputs: [first] }) => {
      const { address, amount } = first as TransactionDocument['outputs'][number];
      node.outputs.set(`${transaction_id}:0`, { address, amount: BigInt(amount), source: 'regular', height });
      return {
        finalized_height: height,
        address,
        kind: 'received' as const,
        outpoint: { transaction_id, output_index: 0 },
        amount,
        source: 'regular' as const,
        transaction_id,
      };
    }),
  };
  return names;
}
