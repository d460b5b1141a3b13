/** A wallet that does not answer, for tests that need none. */
import type { PayoutWallet } from '../../pool/payout/payout-wallet.ts';

export function absentWallet(reason: string): PayoutWallet {
  const away = async () => ({ kind: 'later' as const, reason, isUnused: false });
  return {
    status: away,
    sendMany: away,
    compound: away,
    fate: away,
    payment: away,
    payments: away,
    paidSince: away,
  };
}
