/**
 * Votes of this member's own key that it did not make (consensus rule 13). Either the key runs in a second process, and
 * this one must sign nothing more; or the votes are its own, from before its log was lost, and were replayed. A vote at
 * a height that began when this process was at the tip (rule 21), or that the log covers, was made by another process.
 * In all other cases it cannot be decided: nothing is signed at that height, which is safe in both cases, and the
 * member listens again before it signs at a later one.
 */
import { type ConsensusState, UNKNOWN_HEIGHT } from './state.ts';
import type { Vote } from './votes.ts';

/** Whether an unknown vote of the own key at this height was certainly made by another process. */
export const isFromElsewhere = ({ ownKey }: ConsensusState, height: number): boolean =>
  height >= Math.min(ownKey.newFrom, ownKey.ownFrom);

/** Whether the key voted at this height before, and this member must not. */
export const isBarred = ({ ownKey, height }: ConsensusState): boolean => height <= ownKey.barred;

/** Another unknown vote of the own key would change nothing. */
export const isSettled = (state: ConsensusState, height: number): boolean =>
  state.stopped || (height <= state.ownKey.barred && !isFromElsewhere(state, height));

/** From the height after its first signature on, it knows every vote of its key. */
export function signsFirst({ ownKey, height }: ConsensusState): void {
  ownKey.ownFrom = Math.min(ownKey.ownFrom, height + 1);
}

/** Returns the conclusion: the key runs twice, or this height is given up. */
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
