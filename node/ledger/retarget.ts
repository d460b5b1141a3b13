/**
 * The target of the next blocks (ledger rule 39): four blocks a cut, from the work that recent cuts registered.
 *
 * The estimate is an exponential mean of registered work per cut. Registered work measures hashes whatever target they were made
 * for, so the target does not feed back into the estimate: it can lag a change of hash rate, but it cannot swing. The one feedback is the
 * limit of 64 blocks a cut, which only slows a rise.
 *
 * A rise of more than four times is followed at once, so that a fast card does not flood a small chain for minutes. It counts only work that
 * nobody can save up: blocks on the cut before, whose identifier was not known earlier. Two such cuts in a row are needed, because a single cut
 * that came late has many blocks too.
 */

import { targetOfWork } from '../../protocol/ledger/target.ts';
import { BLOCKS_PER_CUT } from '../../protocol/network.ts';

/** A change of hash rate is followed to two thirds after this many cuts: two minutes at the target pace. */
export const RETARGET_CUTS = 48n;
/** Four times the blocks of a usual cut, on each of the two newest anchors, are a jump and not luck: that happens once in 10^10 cuts. */
export const JUMP_BLOCKS = Number(BLOCKS_PER_CUT) * 4;
/** The estimate keeps 16 bits below the integer, so that small rates decay too. */
const SCALE = 16n;

export type WorkRate = bigint;

export const initialRate = (work: bigint): WorkRate => (work * BLOCKS_PER_CUT) << SCALE;

/** Blocks on the two newest anchors: what this cut registered for the cut before, and what is registered so far for the one before that. */
export type Newest = { readonly work: bigint; readonly blocks: number; readonly blocksBefore: number };

export function nextRate(rate: WorkRate, registeredWork: bigint, newest: Newest, minimumWork: bigint): WorkRate {
  const mean = (rate * (RETARGET_CUTS - 1n) + (registeredWork << SCALE)) / RETARGET_CUTS;
  const isJump = newest.blocks >= JUMP_BLOCKS && newest.blocksBefore >= JUMP_BLOCKS;
  const next = isJump ? larger(mean, newest.work << SCALE) : mean;
  return larger(next, initialRate(minimumWork));
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);

/** Work of one block so that the network makes four a cut. */
export const blockWork = (rate: WorkRate): bigint => {
  const work = (rate >> SCALE) / BLOCKS_PER_CUT;
  return work < 1n ? 1n : work;
};

export const targetOfRate = (rate: WorkRate): bigint => targetOfWork(blockWork(rate));
