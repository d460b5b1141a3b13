/** Payments that a pool publishes: each is an output of a final transaction, and nobody was paid more than the lists credited. */
import type { BooksSources } from '../../protocol/books-evidence.ts';
import type { PaymentDocument } from '../api/documents.ts';
import type { CutReader } from './cut-reader.ts';
import { type Findings, REMEDIES } from './findings.ts';
import { outputText } from './public-money.ts';
import { pagesOf } from './public-reads.ts';

/** All payments but those that can never run. */
export async function readPayments(pool: BooksSources['pool']): Promise<PaymentDocument[]> {
  const payments: PaymentDocument[] = [];
  for await (const payment of pagesOf(pool, 'payments', (answer: { payments: PaymentDocument[] }) => answer.payments))
    if (payment.state !== 'void') payments.push(payment);
  return payments;
}

/** What is listed for each transaction, as `address amount`. */
export function paidByTransaction(payments: readonly PaymentDocument[]): Map<string, string[]> {
  const paid = new Map<string, string[]>();
  for (const payment of payments) {
    if (payment.transaction_id === null) continue;
    const own = paid.get(payment.transaction_id);
    if (own === undefined) paid.set(payment.transaction_id, [outputText(payment)]);
    else own.push(outputText(payment));
  }
  return paid;
}

/** Nobody was paid more than was credited. */
export function auditSums(
  payments: readonly PaymentDocument[],
  credited: ReadonlyMap<string, bigint>,
  findings: Findings,
): void {
  const paid = new Map<string, bigint>();
  for (const { address, amount } of payments) paid.set(address, (paid.get(address) ?? 0n) + BigInt(amount));
  for (const [address, sum] of paid)
    if (sum > (credited.get(address) ?? 0n))
      findings.add(`payments to ${address}`, sum, `${credited.get(address) ?? 0n} credited`, REMEDIES.published);
}

/** Each final payment is an output of its transaction. Returns how many are final beyond the cut that the node has read. */
export async function auditOutputs(
  payments: readonly PaymentDocument[],
  cuts: CutReader,
  through: number,
  findings: Findings,
): Promise<number> {
  let beyond = 0;
  const final = payments.filter(({ state }) => state === 'finalized');
  final.sort((a, b) => (a.final_height ?? 0) - (b.final_height ?? 0));
  const outputs = new Map<string, string[]>();
  for (const payment of final) {
    const { payout_id: id, address, amount, transaction_id: transaction, final_height: height } = payment;
    const name = `payment of ${amount} atoms to ${address} (payout ${id})`;
    if (transaction === null || height === null) {
      findings.add(name, 'final', 'no transaction', REMEDIES.published);
      continue;
    }
    if (height > through) {
      beyond++;
      continue;
    }
    const made =
      outputs.get(transaction) ?? (await cuts.find(height, transaction))?.outputs.map((one) => outputText(one)) ?? [];
    outputs.set(transaction, made);
    const at = made.indexOf(outputText(payment));
    // An output pays one payment.
    if (at === -1) findings.add(name, `transaction ${transaction}`, 'no such output', REMEDIES.published);
    else made.splice(at, 1);
  }
  return beyond;
}
