/** The network's present pace, from the pool's node. */
import type { PoolBlock, PoolDocument } from '../../pool/api/documents.ts';
import { type Pace, secondsUntilPaid } from '../earnings.ts';
import { useChain } from '../explorer/chain-document.ts';
import { duration } from '../format.ts';
import { word } from '../words/language.ts';

const EVERY_MILLIS = 30_000;

export function usePace(): Pace | undefined {
  const { data: rates } = useChain<'chainRates'>('chain/rates', EVERY_MILLIS);
  const { data: emission } = useChain<'emission'>('economics/emission', EVERY_MILLIS);
  if (rates === undefined || emission === undefined) return undefined;
  return { networkRate: Number(rates.hashrate), workHalf: BigInt(emission.work_half), cutMillis: rates.cut_millis };
}

export type PaidIn = (block: PoolBlock) => string | undefined;

/** When a block of the pool gets its reward, in words. */
export function usePaidIn(pool: PoolDocument | undefined): PaidIn {
  const pace = usePace();
  return (block) => {
    if (pool === undefined || pace === undefined) return undefined;
    const { height } = pool.network_figures;
    const chain = { height, cutsUntilPaid: pool.cuts_until_paid, cutMillis: pace.cutMillis };
    const seconds = secondsUntilPaid(block, chain);
    if (seconds === undefined) return undefined;
    return seconds === 0 ? word('blocks.any_moment') : word('blocks.reward_in', { time: duration(seconds) });
  };
}
