/**
 * Listening before the first signature (consensus rule 13). A member whose log says nothing of the height it is at, or of the one before, does not know what was signed with its key meanwhile: the key may run elsewhere, or its log may be lost.
 * It listens for a while first. A vote of its own key that it hears then stops it before it has signed anything; without this it would find out by voting against itself, which costs its whole bond.
 */
import { equalBytes } from '../../protocol/bytes.ts';
import type { ConsensusState, Listening } from './state.ts';
import type { Vote } from './votes.ts';

/** Ticks of rule 15, with a neighbour there: more than three cuts, so that one of them is heard from its beginning to its end. */
export const LISTEN_TICKS = 16;

/** For a member that starts. `logHeight` is the last height of its log, -1 where it has none. */
export function listenFirst(state: ConsensusState, logHeight: number): void {
  listenAgain(state, { logHeight, since: state.height, ticks: 0, begins: false }, false);
}

/** At every height until the first signature. A member that is being served stays behind: it listens once it is there. */
export function listenAgain(state: ConsensusState, { logHeight, ...before }: Listening, wasServed: boolean): void {
  const { height } = state;
  const goesOn = before.ticks > 0 && !wasServed;
  const isCovered = logHeight >= height - 1;
  const ticks = isCovered ? 0 : goesOn ? before.ticks : LISTEN_TICKS;
  state.listening = { logHeight, since: goesOn ? before.since : height, ticks, begins: false };
}

/** Whether a vote for the cut before was made with this member's key elsewhere, while it listened. */
export function isOwnElsewhere(state: ConsensusState, { height, member }: Pick<Vote, 'height' | 'member'>): boolean {
  const { listening, last, committee, self } = state;
  if (listening === undefined || listening.ticks === 0 || height <= listening.since) return false;
  const [voter, own] = [last?.committee.members[member], committee.members[self]];
  return (
    height === last?.height && voter !== undefined && own !== undefined && equalBytes(voter.publicKey, own.publicKey)
  );
}

/** A node that has no seat has nothing to sign; the time counts all the same, so that a new committee begins at once. */
export const isListening = ({ listening, self }: ConsensusState): boolean => self >= 0 && (listening?.ticks ?? 0) > 0;

/** A tick has gone by. True where the height that waited begins now. */
export function listened(state: ConsensusState, heardNobody: boolean): boolean {
  const { listening } = state;
  if (listening === undefined || listening.ticks === 0 || heardNobody) return false;
  listening.ticks--;
  if (listening.ticks > 0) return false;
  state.listening = undefined;
  return listening.begins;
}
