/** When a block of the pool gets its reward, in words. */

import type { PoolBlock, PoolDocument } from '../../pool/api/documents.ts';
import { secondsUntilPaid } from '../earnings.ts';
import { duration } from '../format.ts';
import { word } from '../words/language.ts';
import { usePace } from './pace.ts';

export type PaidIn = (block: PoolBlock) => string | undefined;

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
