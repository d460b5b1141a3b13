/**
 * Decides whether a signed message may be sent. A message waits between its signature and its sending: for the disk,
 * for other effects, or while the process is suspended. Meanwhile this member may have found out that its key runs
 * elsewhere (rules 13 and 23), or may have to listen again (rule 21). Then the message is not sent: another process may
 * have signed a different one for the same round.
 */
import type { Message } from '../engine/effects.ts';
import { isListening } from '../engine/listening.ts';
import type { ConsensusState } from '../engine/state.ts';
import type { Vote } from '../engine/votes.ts';

/** Checked when the message is sent, not when it was made. */
export function mayLeave(state: ConsensusState, message: Message): boolean {
  if (!state.stopped && !isListening(state) && state.height > state.ownKey.barred + 1) return true;
  const isOwn = ({ height, member }: Pick<Vote, 'height' | 'member'>): boolean =>
    member >= 0 && member === seatAt(state, height) && isHeldBack(state, height);
  if (message.type === 'vote') return !isOwn(message.vote);
  if (message.type === 'proof') return !message.proof.votes.some(isOwn);
  if (message.type !== 'proposal') return true;
  const { height, round } = message.proposal;
  return height !== state.height || !isOwn({ height, member: state.committee.proposer(height, round) });
}

const isHeldBack = (state: ConsensusState, height: number): boolean =>
  state.stopped || isListening(state) || height <= state.ownKey.barred;

/** This member's index in the committee of the height, if votes of that height are kept. */
function seatAt({ height: current, self, last }: ConsensusState, height: number): number {
  if (height === current) return self;
  return height === last?.height ? last.self : -1;
}
