/**
 * Compares the wallet's record of payments with the books (books rule 16). Pure. A database replaced by an older copy
 * has lost only the newest payouts, so the payments that only the wallet has are the lost ones.
 */
import { numberOf } from './payout-series.ts';
import { type PaymentFate, type Recipient, samePayment, samePaymentBut, type WalletPayment } from './payout-wallet.ts';

export type BookedPayout = {
  readonly id: string;
  readonly number: number;
  readonly state: 'submitting' | 'submitted' | 'finalized' | 'void';
  readonly requestTable: string | null;
  readonly items: readonly (Recipient & { readonly accountId?: number })[];
};

export type Comparison = {
  /** Payments that the wallet made and the books do not have, in order. */
  readonly missing: readonly (WalletPayment & { readonly number: number })[];
  /** Payouts whose number the wallet used for another payment: it never paid these under it. */
  readonly displaced: readonly BookedPayout[];
  /** Settled in the books, and the wallet says otherwise: the chain was rolled back, or a person decided wrongly. */
  readonly unsettled: readonly {
    readonly payout: BookedPayout;
    readonly says: PaymentFate['state'];
    readonly transactionId: string | null;
  }[];
  /** Differences that no rollback explains. */
  readonly contradictions: readonly string[];
};

/**
 * `books` are the numbered payouts from a number on, `wallet` its payments from there. `failing` are accounts whose
 * books fail the audit: they are not paid (account-check.ts), and a difference in an earlier payment to them does not
 * stop the others.
 */
export function compareWithWallet(
  prefix: string,
  requestTable: string,
  books: readonly BookedPayout[],
  wallet: readonly WalletPayment[],
  failing: ReadonlySet<number> = new Set(),
): Comparison {
  const byNumber = new Map(books.map((payout) => [payout.number, payout]));
  const listed = new Set<number>();
  const missing: (WalletPayment & { number: number })[] = [];
  const displaced: BookedPayout[] = [];
  const unsettled: Comparison['unsettled'][number][] = [];
  const contradictions: string[] = [];
  for (const payment of wallet) {
    const number = numberOf(prefix, payment.requestId);
    if (number === undefined) continue;
    listed.add(number);
    const payout = byNumber.get(number);
    if (payout === undefined) missing.push({ ...payment, number });
    // It was taken for one that never came to the chain (books-repair.ts), and it did not.
    else if (payout.items.length === 0 && payment.fate.state === 'void') continue;
    else if (
      samePayment(payout.items, payment.recipients) ||
      samePaymentBut(payout.items, payment.recipients, ({ accountId }) => failing.has(accountId ?? -1))
    ) {
      if (isSettledOtherwise(payout, payment))
        unsettled.push({ payout, says: payment.fate.state, transactionId: payment.transactionId });
    } else if (payout.state === 'submitting') {
      displaced.push(payout);
      missing.push({ ...payment, number });
    } else contradictions.push(`payment ${number} of the wallet pays others than payout ${payout.id} of the books`);
  }
  for (const { number, state, requestTable: table, id } of books)
    if (table === requestTable && state !== 'submitting' && state !== 'void' && !listed.has(number))
      contradictions.push(`the wallet has no record of payment ${number} (payout ${id}), which it has made`);
  return { missing, displaced, unsettled, contradictions };
}

const isSettledOtherwise = ({ state }: BookedPayout, { fate }: WalletPayment): boolean =>
  (state === 'finalized' || state === 'void') && fate.state !== state;
