/**
 * The template policy `best` (ledger rule 42). The work half of an anchor is shared by all blocks that its window
 * registers, so a hash earns most on the anchor where (blocks + 1) x work is least. All miners with the same view would
 * choose that one anchor, and none would gain. So anchors are drawn at random, with probabilities such that the next
 * `SPREAD_BLOCKS` blocks even out (blocks + 1) x work (water filling).
 */
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';

export const ANCHOR_POLICIES = ['newest', 'best'] as const;
export type AnchorPolicy = (typeof ANCHOR_POLICIES)[number];

/**
 * An anchor's window must stay open for at least this many more cuts, to leave time for miner, server and registration.
 */
export const LEAST_CUTS_LEFT = 16;
/** While more blocks wait, a cut may not register them all: an easy block on an old anchor would wait behind harder ones. */
export const MOST_WAITING = 32;
/** Blocks that the probabilities are made for: with fewer, miners with the same view crowd on few anchors; with more, the draw ignores the differences. */
export const SPREAD_BLOCKS = 16;

/** An open anchor: blocks that are registered for it or wait, and the work of a block on it. */
export type OpenAnchor = { readonly height: number; readonly blocks: number; readonly work: number };

/**
 * Blocks on an anchor may be easier than those on the newest cut by this factor. Anchors from before a jump of the hash
 * rate are much easier: their blocks would flood the cuts, wait behind harder ones, and hide the new rate from the
 * retarget rule, which looks at the newest anchors.
 */
export const EASIEST = 2;

/** The anchors that new work may build on, given those with open windows of one PoW epoch; the newest of them, the last, always. */
export function worthwhileAnchors<A extends OpenAnchor>(open: readonly A[]): readonly A[] {
  const newest = open.at(-1);
  if (newest === undefined) return [];
  return open.filter(
    ({ height, work }) =>
      height + REGISTRATION_WINDOW - newest.height >= LEAST_CUTS_LEFT && work * EASIEST >= newest.work,
  );
}

/** How likely each anchor is to be drawn, in their order; adds up to 1. */
export function anchorChances(anchors: readonly OpenAnchor[], spread = SPREAD_BLOCKS): number[] {
  const cost = ({ blocks, work }: OpenAnchor) => (blocks + 1) * work;
  const byCost = [...anchors].sort((a, b) => cost(a) - cost(b));
  // The level to which `spread` blocks raise the cheapest anchors: sum of (level / work - blocks - 1) over those below it.
  let [inverse, floor, level] = [0, 0, 0];
  for (const anchor of byCost) {
    if (inverse > 0 && cost(anchor) >= level) break;
    inverse += 1 / anchor.work;
    floor += anchor.blocks + 1;
    level = (spread + floor) / inverse;
  }
  return anchors.map(({ blocks, work }) => Math.max(0, level / work - blocks - 1) / spread);
}

/** The anchor at a point from 0 to 1 of the cumulative probability. */
export function anchorAt<A extends OpenAnchor>(anchors: readonly A[], chances: readonly number[], point: number): A {
  let left = point;
  let last: A | undefined;
  for (const [i, chance] of chances.entries()) {
    if (chance <= 0) continue;
    last = anchors[i] as A;
    if (left < chance) return last;
    left -= chance;
  }
  if (last === undefined) throw new RangeError('no anchor to draw from');
  return last;
}
