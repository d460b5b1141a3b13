/**
 * Listening before the first signature (consensus rule 13). A member whose log says nothing of the height it is at, or of the one before, does not know what was signed with its key meanwhile: the key may run elsewhere, or its log may be lost.
 * It listens for a while first. A vote of its own key that it hears then stops it before it has signed anything; without this it would find out by voting against itself, which costs its whole bond.
 *
 * What counts is who would tell it. Strangers do not: anybody can connect and be silent. Members that proved their key, and neighbours that the operator named, do. Where they, and members whose messages came, are more than a third of
 * the stake, an honest one is among them. With fewer it takes much longer: a validator behind a node of its own has no others, and a chain whose members all wait for each other would stand still for good.
 */
import { equalBytes } from '../../protocol/bytes.ts';
import type { Company } from './effects.ts';
import { isFromElsewhere } from './own-key.ts';
import type { Rules } from './rules.ts';
import { type ConsensusState, type Listening, UNKNOWN_HEIGHT } from './state.ts';
import type { Vote } from './votes.ts';

/** Ticks of rule 15 with enough members there: more than three cuts, so that one of them is heard from its beginning to its end. */
export const LISTEN_TICKS = 16;
/** So many ticks with too few count as one. */
export const SLOW_TICKS = 8;

const isCovered = (logHeight: number, height: number): boolean => logHeight >= height - 1;

/** For a member that starts. `logHeight` is the last height of its log, -1 where it has none. */
export function listenFirst(state: ConsensusState, logHeight: number): void {
  listenAgain(state, { logHeight, ticks: 0, begins: false }, false);
}

/** At every height until the first signature. A member that is being served stays behind: it listens once it is there. */
export function listenAgain(state: ConsensusState, { logHeight, ...before }: Listening, wasServed: boolean): void {
  const covered = isCovered(logHeight, state.height);
  const goesOn = before.ticks > 0 && !wasServed;
  const ticks = covered ? 0 : goesOn ? before.ticks : LISTEN_TICKS * SLOW_TICKS;
  state.listening = { logHeight, ticks, begins: false };
  // A log that is older than the height may be older than the key's last vote too.
  state.ownKey.ownFrom = covered ? logHeight : UNKNOWN_HEIGHT;
}

/** Votes of the own key came that may be from before its log was lost. */
export function listenAnew(state: ConsensusState): void {
  state.listening = {
    logHeight: -1,
    ticks: LISTEN_TICKS * SLOW_TICKS,
    begins: state.listening?.begins ?? false,
  };
}

/** Whether a vote for the cut before was made with this member's key elsewhere, while it listened. */
export function isOwnElsewhere(state: ConsensusState, { height, member }: Pick<Vote, 'height' | 'member'>): boolean {
  const { listening, last, committee, self } = state;
  if (listening === undefined || listening.ticks === 0 || !isFromElsewhere(state, height)) return false;
  const [voter, own] = [last?.committee.members[member], committee.members[self]];
  return (
    height === last?.height && voter !== undefined && own !== undefined && equalBytes(voter.publicKey, own.publicKey)
  );
}

/** A node that has no seat has nothing to sign; the time counts all the same, so that a new committee begins at once. */
export const isListening = ({ listening, self }: ConsensusState): boolean => self >= 0 && (listening?.ticks ?? 0) > 0;

/** A tick has gone by. True where the height that waited begins now. */
export function listened(state: ConsensusState, company: Company | undefined, rules: Rules): boolean {
  const { listening } = state;
  if (listening === undefined || listening.ticks === 0) return false;
  listening.ticks = Math.max(0, listening.ticks - worthOf(state, company, rules));
  if (listening.ticks > 0) return false;
  state.listening = undefined;
  return listening.begins;
}

function worthOf(state: ConsensusState, company: Company | undefined, rules: Rules): number {
  const { committee, self, memberRounds, last } = state;
  // Nobody else is needed, so nobody need be heard.
  if (company === undefined || (self >= 0 && rules.isQuorum(committee.stake(self), committee.total))) return SLOW_TICKS;
  const heard = new Set(company.members.filter((member) => member !== self));
  if (heard.size + company.named === 0) return 0;
  for (const [member, round] of memberRounds.entries()) if (member !== self && round >= 0) heard.add(member);
  if (last?.committee === committee)
    for (const member of last.rounds.get(last.round)?.keys() ?? []) if (member !== self) heard.add(member);
  // Whom the operator named is taken for one member, whoever it is.
  let stake = (BigInt(company.named) * committee.total) / BigInt(committee.size);
  for (const member of heard) stake += committee.stake(member);
  return rules.isThird(stake, committee.total) ? SLOW_TICKS : 1;
}
