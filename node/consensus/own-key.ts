/**
 * Votes of this member's own key that it does not know (consensus rule 13). Either the key runs in a second process, and then this one must sign nothing more; or they are its own, from before its log was lost, and anybody can
 * send them again. A vote of a height that began when this process was at the tip (rule 21), or of one that the log covers, was made elsewhere. Of any other nobody can tell: at that height nothing is signed, which is safe in both
 * cases, and the member listens again before it signs at a later one.
 */
import { type ConsensusState, UNKNOWN_HEIGHT } from './state.ts';
import type { Vote } from './votes.ts';

/** Whether an unknown vote of the own key at this height was surely made by another process. */
export const isFromElsewhere = ({ ownKey }: ConsensusState, height: number): boolean =>
  height >= Math.min(ownKey.newFrom, ownKey.ownFrom);

/** Whether the key voted at this height before, and this member must not. */
export const isBarred = ({ ownKey, height }: ConsensusState): boolean => height <= ownKey.barred;

/** Another unknown vote of the own key would change nothing. */
export const isSettled = (state: ConsensusState, height: number): boolean =>
  state.stopped || (height <= state.ownKey.barred && !isFromElsewhere(state, height));

/** From the height after its first signature on it knows all that its key signs. */
export function signsFirst({ ownKey, height }: ConsensusState): void {
  ownKey.ownFrom = Math.min(ownKey.ownFrom, height + 1);
}

/** Gives back what it means: the key runs twice, or this height is given up. */
export function takeUnknown(state: ConsensusState, { height }: Pick<Vote, 'height'>): 'stop' | 'bar' | undefined {
  if (isSettled(state, height)) return undefined;
  if (isFromElsewhere(state, height)) {
    state.stopped = true;
    return 'stop';
  }
  state.ownKey.barred = Math.max(state.ownKey.barred, height);
  state.ownKey.ownFrom = UNKNOWN_HEIGHT;
  return 'bar';
}
