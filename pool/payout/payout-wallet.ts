/** What payouts need of a wallet, in the terms of the daemon's contract. pool/payout/wallet-client.ts speaks JSON-RPC. */

export type WalletAnswer<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** No answer, busy or not synchronized (-32001, -32003): nothing is known; ask again with the same request id. */
  | { readonly kind: 'later'; readonly reason: string }
  /** Outcome unknown (-32002): the wallet keeps sending; ask again with the same request id. */
  | { readonly kind: 'unknown'; readonly reason: string }
  /** Refused before anything was signed, such as not enough funds (-32000). */
  | { readonly kind: 'refused'; readonly reason: string; readonly tooManyOutputs: boolean }
  /** The node refused the transaction (-32004), or the call was wrong (-32602): a person must look. */
  | { readonly kind: 'wrong'; readonly reason: string };

export type Recipient = { readonly address: string; readonly amount: bigint };

export type SentPayment = { readonly transactionId: string; readonly fee: bigint };

/** `void` only when a finalized cut says that the transaction can never execute. */
export type PaymentFate =
  | { readonly state: 'open' }
  | { readonly state: 'finalized'; readonly height: number }
  | { readonly state: 'void'; readonly reason: string };

export type WalletStatus = {
  /** Names the wallet's table of request ids: another one means that old ids are forgotten. */
  readonly requestTable: string;
  readonly spendable: bigint;
  readonly outputs: number;
};

export interface PayoutWallet {
  status(): Promise<WalletAnswer<WalletStatus>>;
  sendMany(requestId: string, recipients: readonly Recipient[]): Promise<WalletAnswer<SentPayment>>;
  /** Merges small outputs. Repeated with the same id it only tells how that went; refused when there is nothing to merge. */
  compound(requestId: string): Promise<WalletAnswer<{ state: PaymentFate['state']; fee: bigint }>>;
  fate(transactionId: string): Promise<WalletAnswer<PaymentFate>>;
}
