/** Payments that a pool publishes: each is an output of a final transaction, and nobody was paid more than the lists credited. */
import type { BooksSources } from '../../protocol/books-evidence.ts';
import type { PaymentDocument } from '../api/documents.ts';
import { type Findings, REMEDIES } from './findings.ts';
import { pagesOf } from './public-reads.ts';

type Node = NonNullable<BooksSources['node']>;

/** Outputs of a transaction, as `address amount`; undefined when the cut does not have it as final. */
async function outputsOf(node: Node, height: number, transaction: string): Promise<string[] | undefined> {
  for (let cursor: string | undefined; ; ) {
    const page = await node.cutTransactions({ height, limit: 64, ...(cursor === undefined ? {} : { cursor }) });
    const found = page.transactions.find((each) => each.transaction_id === transaction);
    if (found !== undefined)
      return found.outcome === 'finalized'
        ? found.outputs.map(({ address, amount }) => `${address} ${amount}`)
        : undefined;
    if (page.next_cursor === undefined) return undefined;
    cursor = page.next_cursor;
  }
}

export async function auditPublicPayments(
  { pool, node }: BooksSources,
  credited: ReadonlyMap<string, bigint>,
  findings: Findings,
): Promise<number> {
  const paid = new Map<string, bigint>();
  const outputs = new Map<string, string[] | undefined>();
  let count = 0;
  const pages = pagesOf(pool, 'payments', (answer: { payments: PaymentDocument[] }) => answer.payments);
  for await (const {
    payout_id: id,
    state,
    address,
    amount,
    transaction_id: transaction,
    final_height: height,
  } of pages) {
    if (state === 'void') continue;
    count++;
    paid.set(address, (paid.get(address) ?? 0n) + BigInt(amount));
    if (state !== 'finalized' || node === null) continue;
    const name = `payment of ${amount} atoms to ${address} (payout ${id})`;
    if (transaction === null || height === null) {
      findings.add(name, 'final', 'no transaction', REMEDIES.published);
      continue;
    }
    if (!outputs.has(transaction)) outputs.set(transaction, await outputsOf(node, height, transaction));
    const made = outputs.get(transaction);
    const at = made?.indexOf(`${address} ${amount}`) ?? -1;
    // An output pays one payment.
    if (at === -1) findings.add(name, `transaction ${transaction}`, 'no such output', REMEDIES.published);
    else made?.splice(at, 1);
  }
  for (const [address, sum] of paid)
    if (sum > (credited.get(address) ?? 0n))
      findings.add(`payments to ${address}`, sum, `${credited.get(address) ?? 0n} credited`, REMEDIES.published);
  return count;
}
