/**
 * The wallet interface for payouts, in the terms of the daemon's contract. pool/payout/wallet-client.ts implements it
 * over JSON-RPC.
 */

export type WalletAnswer<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /**
   * Not now. With `isUnused` the wallet said that nothing was done, so the request id is free; without it, there was no
   * answer, and only repeating the request with the same id shows what happened.
   */
  | { readonly kind: 'later'; readonly reason: string; readonly isUnused: boolean }
  /**
   * In the wallet's record, but the node refused it (-32004) or may not have it (-32002): its state is queried like any
   * other's.
   */
  | { readonly kind: 'unknown'; readonly reason: string; readonly transactionId: string | null }
  /** Refused before anything was signed, such as not enough funds (-32000). */
  | { readonly kind: 'refused'; readonly reason: string; readonly tooManyOutputs: boolean }
  /**
   * The call was wrong (-32602), or the wallet failed (-32603). `recipient` is the one at fault, if the wallet names
   * it.
   */
  | { readonly kind: 'wrong'; readonly reason: string; readonly recipient: number | null };

export type Recipient = { readonly address: string; readonly amount: bigint };

export type SentPayment = {
  readonly transactionId: string;
  readonly fee: bigint;
  /** The actual payment: a request id that was used before returns the earlier payment, whatever is requested now. */
  readonly recipients: readonly Recipient[];
};

/** `void` only when a finalized cut says that the transaction can never execute. */
export type PaymentFate =
  | { readonly state: 'open' }
  | { readonly state: 'finalized'; readonly height: number; readonly fee: bigint | null }
  | { readonly state: 'void'; readonly reason: string };

/** A payment in the wallet's record under a request id. */
export type WalletPayment = {
  readonly requestId: string;
  readonly recipients: readonly Recipient[];
  /** Null when it failed before anything was signed. */
  readonly transactionId: string | null;
  readonly fee: bigint;
  readonly createdMillis: number;
  readonly fate: PaymentFate;
};

/** A final payment out of the wallet, read from the chain: available also if the wallet has lost its request table. */
export type ChainPayment = {
  readonly transactionId: string;
  readonly height: number;
  readonly recipients: readonly Recipient[];
  readonly fee: bigint | null;
  /** What a payout carries is its commitment (books rule 21). */
  readonly payloadText?: string | null;
  /** Whom it pays is not known: the wallet read the chain from a node that has deleted this cut. */
  readonly isUnread?: boolean;
};

export type WalletStatus = {
  /** Identifies the wallet's table of request ids: a different value means that old ids are lost. */
  readonly requestTable: string;
  readonly spendable: bigint;
  readonly outputs: number;
  /** The height to which it has read the chain, and whether that is the whole chain. */
  readonly indexedHeight: number;
  readonly isCaughtUp: boolean;
  /** Number of cuts in which a signed payment can still execute. */
  readonly validityCuts: number;
  /** Why the wallet has stopped paying until a person has looked; null while it pays. */
  readonly stopped: string | null;
};

export interface PayoutWallet {
  status(): Promise<WalletAnswer<WalletStatus>>;
  /** `payloadText` is public, as part of the transaction (books rule 21). */
  sendMany(
    requestId: string,
    recipients: readonly Recipient[],
    payloadText?: string | null,
  ): Promise<WalletAnswer<SentPayment>>;
  /**
   * Merges small outputs. Repeated with the same id, it only returns the result; refused when there is nothing to
   * merge.
   */
  compound(requestId: string): Promise<WalletAnswer<{ state: PaymentFate['state']; fee: bigint }>>;
  fate(transactionId: string): Promise<WalletAnswer<PaymentFate>>;
  /** Whom a transaction of this wallet pays. */
  payment(
    transactionId: string,
  ): Promise<WalletAnswer<Pick<SentPayment, 'recipients'> & { readonly fee: bigint | null }>>;
  /** All payments whose ids begin with a text, in the order of ids, after `after`; those after `through` may be left out. */
  payments(prefix: string, after?: string, through?: string): Promise<WalletAnswer<readonly WalletPayment[]>>;
  /** Final payments out of this wallet above a height. */
  paidSince(height: number): Promise<WalletAnswer<readonly ChainPayment[]>>;
}

/** Whether two payments pay the same recipients the same amounts. */
export function samePayment(a: readonly Recipient[], b: readonly Recipient[]): boolean {
  const lines = (list: readonly Recipient[]) => list.map(({ address, amount }) => `${address} ${amount}`).sort();
  const [left, right] = [lines(a), lines(b)];
  return left.length === right.length && left.every((line, i) => line === right[i]);
}

/** Whether two payments are equal except for the recipients in `some` of the first, where only amounts must match. */
export function samePaymentBut<R extends Recipient>(
  items: readonly R[],
  paid: readonly Recipient[],
  isExcepted: (item: R) => boolean,
): boolean {
  const left = [...paid];
  const take = (is: (one: Recipient) => boolean): boolean => {
    const at = left.findIndex(is);
    if (at !== -1) left.splice(at, 1);
    return at !== -1;
  };
  const others = items.filter((item) => !isExcepted(item));
  const excepted = items.filter(isExcepted);
  return (
    others.every(({ address, amount }) => take((one) => one.address === address && one.amount === amount)) &&
    excepted.every(({ amount }) => take((one) => one.amount === amount)) &&
    left.length === 0
  );
}
