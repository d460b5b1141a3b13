/**
 * A block that passed every check but cannot be executed shows a bug in this program. It must not stop the chain: the
 * block waits in the store, so every start would fail again. The cut is made without it. An error of this
 * node's own says nothing of a block, and is thrown.
 */
import { isOwnError } from './unread-record.ts';

export type BrokenBlock<B> = { readonly block: B; readonly error: unknown };

/**
 * `apply` has no side effects. If it fails even without blocks, the ledger itself is broken, and the error is thrown.
 */
export function applySound<B, R>(
  blocks: readonly B[],
  apply: (blocks: readonly B[]) => R,
): { readonly result: R; readonly broken: readonly BrokenBlock<B>[] } {
  try {
    return { result: apply(blocks), broken: [] };
  } catch (error) {
    if (blocks.length === 0 || isOwnError(error)) throw error;
  }
  const sound: B[] = [];
  const broken: BrokenBlock<B>[] = [];
  for (const block of blocks)
    try {
      apply([...sound, block]);
      sound.push(block);
    } catch (error) {
      if (isOwnError(error)) throw error;
      broken.push({ block, error });
    }
  return { result: apply(sound), broken };
}
