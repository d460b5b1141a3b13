/**
 * Checks the payments that a pool publishes: each is an output of a final transaction, and no account was paid more
 * than it was credited.
 */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { PaymentDocument } from '../api/documents.ts';
import type { CutReader } from './cut-reader.ts';
import { type Findings, REMEDIES } from './findings.ts';
import { type AddressMoney, type Overpaid, outputText, spendsOf } from './public-money.ts';
import { pagesOf } from './public-reads.ts';
import { readPayment } from './public-rows.ts';
import type { UnreadRows } from './public-unread.ts';

/** All payments except void ones. */
export async function readPayments(pool: BooksSources['pool'], network: NetworkName): Promise<PaymentDocument[]> {
  const payments: PaymentDocument[] = [];
  const read = (row: unknown) => readPayment(row, network);
  for await (const payment of pagesOf(pool, 'payments', { rows: 'payments', read }))
    if (payment.state !== 'void') payments.push(payment);
  return payments;
}

/** The listed payments of each transaction, as `address amount`. */
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

export type Output = { readonly address: string; readonly amount: string };

/**
 * Payments that the pool has asked its wallet for and does not know the transaction of yet: it stopped in between, or the wallet's answer was lost. The ledger may
 * have them already. Each counts once, and all of them count against what was credited.
 */
export class PaymentsUnderWay {
  /** Outputs by payout. */
  readonly #open = new Map<string, string[]>();
  readonly #paid: Map<string, string[]>;

  /** Matched payments are added to `paid`. */
  constructor(payments: readonly PaymentDocument[], paid: Map<string, string[]>) {
    this.#paid = paid;
    for (const payment of payments) {
      if (payment.state !== 'submitting' || payment.transaction_id !== null) continue;
      const own = this.#open.get(payment.payout_id);
      if (own === undefined) this.#open.set(payment.payout_id, [outputText(payment)]);
      else own.push(outputText(payment));
    }
  }

  get payouts(): number {
    return this.#open.size;
  }

  /** All pending payments. */
  get amount(): bigint {
    const open = [...this.#open.values()].flat();
    return open.reduce((sum, each) => sum + BigInt(each.split(' ')[1] as string), 0n);
  }

  /** Whether a transaction pays exactly one of these payouts, and the rest returns to the pool. */
  take(transaction: string, outputs: readonly Output[], poolAddress: string): boolean {
    const strangers = outputs.filter(({ address }) => address !== poolAddress).map(outputText);
    const all = outputs.map(outputText);
    for (const [payout, due] of this.#open) {
      const isPaid = isWithin(due, all) && isWithin(strangers, due);
      if (!isPaid) continue;
      this.#open.delete(payout);
      this.#paid.set(transaction, due);
      return true;
    }
    return false;
  }
}

/** Whether the multiset `some` is contained in `all`. */
function isWithin(some: readonly string[], all: readonly string[]): boolean {
  const left = [...all];
  return some.every((each) => {
    const at = left.indexOf(each);
    if (at !== -1) left.splice(at, 1);
    return at !== -1;
  });
}

/** Credits that the pool has not paid. When they are due depends on each account's threshold, which is not public. */
type Unpaid = { readonly accounts: number; readonly amount: string };

/** What accounts were paid, compared with what they were credited. */
export function sumsOf(
  payments: readonly Output[],
  credited: ReadonlyMap<string, bigint>,
): { readonly unpaid: Unpaid; readonly overpaid: readonly Overpaid[] } {
  const paid = new Map<string, bigint>();
  for (const { address, amount } of payments) paid.set(address, (paid.get(address) ?? 0n) + BigInt(amount));
  const rests = [...credited].map(([address, sum]) => sum - (paid.get(address) ?? 0n)).filter((rest) => rest > 0n);
  return {
    unpaid: { accounts: rests.length, amount: String(rests.reduce((sum, rest) => sum + rest, 0n)) },
    overpaid: [...paid]
      .map(([address, sum]) => ({ address, paid: sum, credited: credited.get(address) ?? 0n }))
      .filter((each) => each.paid > each.credited),
  };
}

export type PaymentReads = {
  readonly cuts: CutReader;
  readonly unread: UnreadRows;
  /** The cut that the node has read up to. */
  readonly through: number;
  readonly address: string;
  /** The history of that address, where the node has it. */
  readonly money: AddressMoney | undefined;
};

/**
 * Each final payment is an output of its transaction, and the pool made that transaction: it spent from the pool's
 * address (rule 25). The address's history shows that even for transactions that the node has deleted. Returns how many
 * are final beyond the cut that the node has read.
 */
export async function auditOutputs(
  payments: readonly PaymentDocument[],
  { cuts, unread, through, address: poolAddress, money }: PaymentReads,
  findings: Findings,
): Promise<number> {
  let beyond = 0;
  const final = payments.filter(({ state }) => state === 'finalized');
  final.sort((a, b) => (a.final_height ?? 0) - (b.final_height ?? 0));
  const outputs = new Map<string, string[]>();
  const wasSpent = spendsOf(money);
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
    const isForeign = () =>
      findings.add(name, `transaction ${transaction}`, 'nothing of the pool was spent by it', REMEDIES.published);
    const known = outputs.get(transaction);
    const read = await unread.read('payments', name, async () =>
      known === undefined ? cuts.find(height, transaction) : undefined,
    );
    if (read === undefined) {
      if (!wasSpent(transaction, height)) isForeign();
      continue;
    }
    const found = read.value;
    const made = known ?? found?.outputs.map((one) => outputText(one)) ?? [];
    outputs.set(transaction, made);
    if (found !== undefined && !found.inputs.some((input) => input.address === poolAddress)) isForeign();
    const at = made.indexOf(outputText(payment));
    // An output pays one payment.
    if (at === -1) findings.add(name, `transaction ${transaction}`, 'no such output', REMEDIES.published);
    else made.splice(at, 1);
  }
  return beyond;
}
