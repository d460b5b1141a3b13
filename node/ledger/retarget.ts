/**
 * The target of the next blocks (ledger rule 39): four blocks a cut, from the work that recent cuts registered.
 *
 * The estimate is an exponential mean of registered work per cut. Registered work measures hashes whatever target they were made
 * for, so the target does not feed back into the estimate: it can lag a change of hash rate, but it cannot swing. The one feedback is the
 * limit of 64 blocks a cut, which only slows a rise.
 */
import { targetOfWork } from '../../protocol/target.ts';

export const BLOCKS_PER_CUT = 4n;
/** A change of hash rate is followed to two thirds after this many cuts: two minutes at the target pace. */
export const RETARGET_CUTS = 48n;
/** The estimate keeps 16 bits below the integer, so that small rates decay too. */
const SCALE = 16n;

export type WorkRate = bigint;

export const initialRate = (work: bigint): WorkRate => (work * BLOCKS_PER_CUT) << SCALE;

export function nextRate(rate: WorkRate, registeredWork: bigint, minimumWork: bigint): WorkRate {
  const next = (rate * (RETARGET_CUTS - 1n) + (registeredWork << SCALE)) / RETARGET_CUTS;
  const floor = initialRate(minimumWork);
  return next < floor ? floor : next;
}

/** Work of one block so that the network makes four a cut. */
export const blockWork = (rate: WorkRate): bigint => {
  const work = (rate >> SCALE) / BLOCKS_PER_CUT;
  return work < 1n ? 1n : work;
};

export const targetOfRate = (rate: WorkRate): bigint => targetOfWork(blockWork(rate));
