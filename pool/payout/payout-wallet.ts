/** What payouts need of a wallet, in the terms of the daemon's contract. pool/payout/wallet-client.ts implements it over JSON-RPC. */

export type WalletAnswer<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /**
   * Not now: nothing was done. With `isUnused` the wallet said so itself, so the request id is free; without, there was no answer, and only a
   * repetition with the same request id tells.
   */
  | { readonly kind: 'later'; readonly reason: string; readonly isUnused: boolean }
  /** On the wallet's record, and whether the node has it is unknown (-32002) or it refused it (-32004): its fate is asked for like any other's. */
  | { readonly kind: 'unknown'; readonly reason: string; readonly transactionId: string | null }
  /** Refused before anything was signed, such as not enough funds (-32000). */
  | { readonly kind: 'refused'; readonly reason: string; readonly tooManyOutputs: boolean }
  /** The call was wrong (-32602), or the wallet failed over it (-32603). `recipient` is the one at fault, where the wallet names it. */
  | { readonly kind: 'wrong'; readonly reason: string; readonly recipient: number | null };

export type Recipient = { readonly address: string; readonly amount: bigint };

export type SentPayment = {
  readonly transactionId: string;
  readonly fee: bigint;
  /** What was really paid: a request id that was used before pays what it paid then, whatever is asked now. */
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

/** A final payment out of the wallet, read from the chain: known also to a wallet that has lost its request table. */
export type ChainPayment = {
  readonly transactionId: string;
  readonly height: number;
  readonly recipients: readonly Recipient[];
  readonly fee: bigint | null;
};

export type WalletStatus = {
  /** Names the wallet's table of request ids: another one means that old ids are forgotten. */
  readonly requestTable: string;
  readonly spendable: bigint;
  readonly outputs: number;
  /** How far it has read the chain, and whether that is everything. */
  readonly indexedHeight: number;
  readonly isCaughtUp: boolean;
  /** Cuts that a payment can still run after it was signed. */
  readonly validityCuts: number;
  /** Why the wallet pays nothing until a person has looked; null while it pays. */
  readonly stopped: string | null;
};

export interface PayoutWallet {
  status(): Promise<WalletAnswer<WalletStatus>>;
  /** `payloadText` is carried by the transaction, for everybody to read (books rule 21). */
  sendMany(
    requestId: string,
    recipients: readonly Recipient[],
    payloadText?: string | null,
  ): Promise<WalletAnswer<SentPayment>>;
  /** Merges small outputs. Repeated with the same id it only returns the outcome; refused when there is nothing to merge. */
  compound(requestId: string): Promise<WalletAnswer<{ state: PaymentFate['state']; fee: bigint }>>;
  fate(transactionId: string): Promise<WalletAnswer<PaymentFate>>;
  /** Whom a transaction of this wallet pays. */
  payment(
    transactionId: string,
  ): Promise<WalletAnswer<Pick<SentPayment, 'recipients'> & { readonly fee: bigint | null }>>;
  /** Everything on record under ids that begin with a text, in the order of ids, from `after` on (not included). */
  payments(prefix: string, after?: string): Promise<WalletAnswer<readonly WalletPayment[]>>;
  /** Final payments out of this wallet above a height. */
  paidSince(height: number): Promise<WalletAnswer<readonly ChainPayment[]>>;
}

/** Whether two payments pay the same people the same amounts. */
export function samePayment(a: readonly Recipient[], b: readonly Recipient[]): boolean {
  const lines = (list: readonly Recipient[]) => list.map(({ address, amount }) => `${address} ${amount}`).sort();
  const [left, right] = [lines(a), lines(b)];
  return left.length === right.length && left.every((line, i) => line === right[i]);
}

/** Whether two payments are the same but for whom some of the first are to: the amounts are. */
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
