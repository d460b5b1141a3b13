/** The network's present pace, from the pool's node. */
import type { Pace } from '../earnings.ts';
import { useChain } from '../explorer/chain-document.ts';

const EVERY_MILLIS = 30_000;

export function usePace(): Pace | undefined {
  const { data: rates } = useChain<'chainRates'>('chain/rates', EVERY_MILLIS);
  const { data: emission } = useChain<'emission'>('economics/emission', EVERY_MILLIS);
  if (rates === undefined || emission === undefined) return undefined;
  return { networkRate: Number(rates.hashrate), workHalf: BigInt(emission.work_half), cutMillis: rates.cut_millis };
}
