/**
 * Checkpoints, to detect that the node no longer has the chain that was read (docs/wallet.md, When something was restored): the cut ids of
 * some heights, close together near the newest and ever further apart below it.
 */
import type { NodeClient } from '../chain/node-link.ts';

export type Checkpoint = { readonly height: number; readonly cutId: string };

/** Further below nothing is kept: after a deeper rollback everything has to be read again anyway. */
const DEEPEST = 2 ** 16;

/** Newest first. Of the heights that are 2^k to 2^(k+1) below the newest the first and the last stay, so that none of these ranges becomes empty. */
export function withCheckpoint(kept: readonly Checkpoint[], newest: Checkpoint): readonly Checkpoint[] {
  const below = kept.filter(({ height }) => height < newest.height && newest.height - height < DEEPEST);
  const range = ({ height }: Checkpoint) => Math.floor(Math.log2(newest.height - height));
  const stays = (one: Checkpoint, i: number): boolean => {
    const isFirst = i === 0 || range(below[i - 1] as Checkpoint) !== range(one);
    const isLast = i === below.length - 1 || range(below[i + 1] as Checkpoint) !== range(one);
    return isFirst || isLast;
  };
  return [newest, ...below.filter(stays)];
}

/** The id of a cut, or undefined when the node has none of that height. */
export async function cutIdAt(client: Pick<NodeClient, 'cuts'>, height: number): Promise<string | undefined> {
  const { cuts } = await client.cuts({ before: height + 1, limit: 1 });
  const [cut] = cuts;
  return cut?.height === height ? cut.cut_id : undefined;
}

/**
 * `same`: the node has everything that was read. `behind`: it has not reached that height, or was rolled back. `other`:
 * its chain differs above `sound`.
 */
export type Comparison = { readonly kind: 'same' } | { readonly kind: 'behind' | 'other'; readonly sound: number };

export async function compareWithNode(
  client: Pick<NodeClient, 'cuts'>,
  checkpoints: readonly Checkpoint[],
  head: number,
): Promise<Comparison> {
  const [newest] = checkpoints;
  if (newest === undefined) return { kind: 'same' };
  let kind: 'behind' | 'other' = 'behind';
  for (const { height, cutId } of checkpoints) {
    if (height > head) continue;
    if ((await cutIdAt(client, height)) === cutId)
      return height === newest.height ? { kind: 'same' } : { kind, sound: height };
    kind = 'other';
  }
  return { kind, sound: 0 };
}
