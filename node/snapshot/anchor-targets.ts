/**
 * The work rates after the cuts of a snapshot. A block is checked against the target of its anchor, which is in the
 * anchor's state and in no header; the others follow from the rate before the first of these cuts and from the
 * registered blocks (ledger rule 39), so that none has to be trusted.
 */
import { nextRate, type WorkRate } from '../ledger/retarget.ts';

export type RegisteredWork = { readonly anchorHeight: number; readonly work: bigint };

const workOf = (blocks: readonly RegisteredWork[]): bigint => blocks.reduce((sum, { work }) => sum + work, 0n);

/** `cuts` are the blocks of the cut of height `first` and of those after it; `rate` is that after the first. One rate for each. */
export function ratesAfter(
  rate: WorkRate,
  first: number,
  cuts: readonly (readonly RegisteredWork[])[],
  minimumWork: bigint,
): WorkRate[] {
  const rates = [rate];
  for (let i = 1; i < cuts.length; i++) {
    const height = first + i;
    const [before, now] = [cuts[i - 1] ?? [], cuts[i] ?? []];
    const newest = now.filter(({ anchorHeight }) => anchorHeight === height - 1);
    // A block on the cut before that can have been registered by that cut and by this one.
    const blocksBefore = [...before, ...now].filter(({ anchorHeight }) => anchorHeight === height - 2).length;
    const figures = { work: workOf(newest), blocks: newest.length, blocksBefore };
    rates.push(nextRate(rates[i - 1] as WorkRate, workOf(now), figures, minimumWork));
  }
  return rates;
}
