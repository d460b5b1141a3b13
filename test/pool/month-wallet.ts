/**
 * The wallet of the simulated month. It keeps its promises (a request id is sent once, whatever happens) and nothing else is
 * sure: answers get lost before and after sending, some payments can never execute, and its outputs pile up.
 */
import type {
  ChainPayment,
  PaymentFate,
  PayoutWallet,
  Recipient,
  SentPayment,
  WalletAnswer,
  WalletPayment,
  WalletStatus,
} from '../../pool/payout/payout-wallet.ts';
import { toHex } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

type Payment = SentPayment & {
  readonly recipients: readonly Recipient[];
  readonly settledAt: number;
  readonly isVoid: boolean;
};

const LOST = { kind: 'later', reason: 'no answer', isUnused: false } as const;

export class MonthWallet implements PayoutWallet {
  readonly #draw: (below: number) => number;
  readonly #head: () => number;
  readonly #payments = new Map<string, Payment>();
  readonly #byTransaction = new Map<string, Payment>();
  readonly #merges = new Map<string, { fee: bigint; settledAt: number }>();
  lost = 0;

  constructor(draw: (below: number) => number, head: () => number) {
    this.#draw = draw;
    this.#head = head;
  }

  async status(): Promise<WalletAnswer<WalletStatus>> {
    if (this.#draw(40) === 0) return LOST;
    return {
      kind: 'ok',
      value: {
        requestTable: 'month',
        spendable: 10n ** 15n,
        outputs: 50 + this.#draw(20),
        indexedHeight: this.#head(),
        isCaughtUp: true,
        validityCuts: 1000,
        stopped: null,
      },
    };
  }

  async sendMany(requestId: string, recipients: readonly Recipient[]): Promise<WalletAnswer<SentPayment>> {
    const known = this.#payments.get(requestId);
    if (known === undefined) {
      if (this.#draw(20) === 0) return LOST;
      if (this.#draw(20) === 0) return { kind: 'refused', reason: 'not now', tooManyOutputs: this.#draw(2) === 0 };
      const payment = {
        transactionId: toHex(pattern(`month/payment/${requestId}`, 48)),
        fee: BigInt(1 + this.#draw(1000)),
        recipients,
        settledAt: this.#head() + this.#draw(500),
        isVoid: this.#draw(20) === 0,
      };
      this.#payments.set(requestId, payment);
      this.#byTransaction.set(payment.transactionId, payment);
    }
    // Of the first answers every fifth is lost, of the later ones some are.
    if (known === undefined ? this.#payments.size % 5 === 1 : this.#draw(10) === 0) {
      this.lost++;
      const { transactionId } = this.#payments.get(requestId) as Payment;
      return this.#draw(2) === 0 ? LOST : { kind: 'unknown', reason: 'sent, perhaps', transactionId };
    }
    const { transactionId, fee, recipients: paid } = this.#payments.get(requestId) as Payment;
    return { kind: 'ok', value: { transactionId, fee, recipients: paid } };
  }

  async compound(requestId: string): Promise<WalletAnswer<{ state: PaymentFate['state']; fee: bigint }>> {
    if (!this.#merges.has(requestId)) {
      if (this.#draw(4) === 0) return { kind: 'refused', reason: 'nothing to merge', tooManyOutputs: false };
      this.#merges.set(requestId, { fee: BigInt(1 + this.#draw(100)), settledAt: this.#head() + this.#draw(500) });
    }
    const { fee, settledAt } = this.#merges.get(requestId) as { fee: bigint; settledAt: number };
    return { kind: 'ok', value: { state: settledAt <= this.#head() ? 'finalized' : 'open', fee } };
  }

  async fate(transactionId: string): Promise<WalletAnswer<PaymentFate>> {
    return { kind: 'ok', value: this.#fateOf(this.#byTransaction.get(transactionId) as Payment) };
  }

  #fateOf({ settledAt, isVoid, fee }: Payment): PaymentFate {
    if (settledAt > this.#head()) return { state: 'open' };
    return isVoid ? { state: 'void', reason: 'an input was spent' } : { state: 'finalized', height: settledAt, fee };
  }

  async payments(prefix: string, after = ''): Promise<WalletAnswer<readonly WalletPayment[]>> {
    if (this.#draw(40) === 0) return LOST;
    const found = [...this.#payments].filter(([name]) => name.startsWith(prefix) && name > after);
    const value = found
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([requestId, { recipients, transactionId, fee, ...rest }]) => {
        const fate = this.#fateOf({ recipients, transactionId, fee, ...rest });
        return { requestId, recipients, transactionId, fee, createdMillis: 0, fate };
      });
    return { kind: 'ok', value };
  }

  async paidSince(height: number): Promise<WalletAnswer<readonly ChainPayment[]>> {
    const value = [...this.#payments.values()].flatMap((payment) => {
      const { recipients, transactionId, fee } = payment;
      const fate = this.#fateOf(payment);
      const isListed = fate.state === 'finalized' && fate.height > height;
      return isListed ? [{ transactionId, height: fate.height, recipients, fee }] : [];
    });
    return { kind: 'ok', value };
  }

  async payment(transactionId: string): ReturnType<PayoutWallet['payment']> {
    const { recipients, fee } = this.#byTransaction.get(transactionId) as Payment;
    return { kind: 'ok', value: { recipients, fee } };
  }

  /** What reached each address, and what that cost. */
  paid(): { readonly byAddress: ReadonlyMap<string, bigint>; readonly fees: bigint; readonly payments: number } {
    const byAddress = new Map<string, bigint>();
    let [fees, payments] = [0n, 0];
    for (const { recipients, isVoid, fee } of this.#payments.values()) {
      if (isVoid) continue;
      payments++;
      fees += fee;
      for (const { address, amount } of recipients) byAddress.set(address, (byAddress.get(address) ?? 0n) + amount);
    }
    return { byAddress, fees, payments };
  }
}
