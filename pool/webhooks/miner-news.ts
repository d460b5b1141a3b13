/** Turns events of the pool into news for a miner: only the part that concerns this miner. */
import type { PoolEvent } from '../api/public/live.ts';

export type MinerNews = {
  readonly eventId: number;
  readonly address: string;
  readonly kind: string;
  readonly atMillis: number;
  readonly data: Readonly<Record<string, unknown>>;
};

type Payout = {
  readonly payout_id: string;
  readonly transaction_id: string;
  readonly recipients: readonly { readonly address: string; readonly amount: string }[];
};

export function newsOf({ id: eventId, kind, atMillis, data }: PoolEvent): MinerNews[] {
  const one = (address: unknown, own: Readonly<Record<string, unknown>>): MinerNews[] =>
    typeof address === 'string' ? [{ eventId, address, kind, atMillis, data: own }] : [];
  switch (kind) {
    case 'block_found': {
      const { finder, ...block } = data as Record<string, unknown>;
      return one(finder, block);
    }
    case 'payout_sent':
    case 'payout_final': {
      const { payout_id, transaction_id, recipients } = data as Payout;
      return (recipients ?? []).flatMap(({ address, amount }) => one(address, { payout_id, transaction_id, amount }));
    }
    case 'worker_silent':
    case 'worker_back': {
      const { address, ...worker } = data as Record<string, unknown>;
      return one(address, worker);
    }
    default:
      return [];
  }
}
