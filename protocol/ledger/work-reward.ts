/**
 * The reward of a block (ledger rules 6 and 37): its outpoint, and the maximum subsidy of an anchor. The node pays by
 * these rules; readers check a claimed reward by them.
 */
import type { Bytes } from '../bytes.ts';
import { id, LABELS } from '../crypto/identifier.ts';
import type { Outpoint } from '../transactions/transaction.ts';
import { type EmissionState, firstInterval, nextInterval } from './emission.ts';

/** A block is paid once, so its reward's outpoint follows from its identifier alone. */
export const workRewardOutpoint = (blockId: Bytes): Outpoint => ({
  transactionId: id(LABELS.workPayment, blockId),
  outputIndex: 0,
});

/** Work halves of the first `cuts` cuts of an interval: a subsidy is one of two neighbouring amounts, and each is halved for itself. */
function halvesOf(amount: bigint, cuts: bigint, all: bigint): bigint {
  const low = amount / all;
  const high = (amount * cuts) / all - low * cuts;
  return (cuts - high) * (low / 2n) + high * ((low + 1n) / 2n);
}

let known: EmissionState = firstInterval();

function intervalAt(interval: number): EmissionState {
  if (interval < known.interval) known = firstInterval();
  while (known.interval < interval) known = nextInterval(known);
  return known;
}

/**
 * The work halves of the cuts `from` to `through` together: what an anchor has to pay when none since `from` had work. The cuts of an
 * interval are the chain's (genesis); a development chain may have few.
 */
export function workHalves(from: number, through: number, intervalCuts: number): bigint {
  let sum = 0n;
  for (let interval = Math.floor(from / intervalCuts); interval * intervalCuts <= through; interval++) {
    const { amount, remaining } = intervalAt(interval);
    const first = interval * intervalCuts;
    const all = BigInt(intervalCuts);
    const cutsBefore = (height: number): bigint => BigInt(Math.min(Math.max(height - first, 0), intervalCuts));
    sum += halvesOf(amount, cutsBefore(through + 1), all) - halvesOf(amount, cutsBefore(from), all);
    // The last atom has been issued.
    if (remaining === 0n) break;
  }
  return sum;
}
