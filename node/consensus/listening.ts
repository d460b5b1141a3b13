/**
 * Listening before the first signature (consensus rule 21). A member that starts does not know what was signed with its key meanwhile: the key may run elsewhere, its log may be lost, log and store may be an old copy.
 * So it always listens first. A vote of its own key that it hears then keeps it from signing; without this it would find out by voting against itself, which costs its whole bond.
 *
 * What counts is time in which it would have been told, and neither clocks nor messages say when that is: clocks are wrong, and whatever was ever signed can be sent again. Two things cannot be made up. Connections: members
 * that proved their key, each with its stake; more than a third of the stake has an honest one among them. And the pace: at the tip heights take their time, while one that is behind, and has an honest neighbour, gets them much
 * faster, from any sender and in any form. So every height that begins takes back a part of the time: a node that is behind does not get to the end, and one at the tip does, however its cuts come.
 */
import { equalBytes } from '../../protocol/bytes.ts';
import type { Company, Neighbours } from './effects.ts';
import { seenVote } from './last-cut.ts';
import { isSettled } from './own-key.ts';
import { TICKS_OF_A_CUT } from './pace.ts';
import { RULES, type Rules } from './rules.ts';
import { type ConsensusState, UNKNOWN_HEIGHT } from './state.ts';
import { NIL, type Vote } from './votes.ts';

/** Ticks of rule 15 that a member listens. With what heights take back it is more than three cuts, so that one of them is heard from its beginning to its end. */
export const LISTEN_TICKS = 12;
/** Where its log covers the height: long enough to be handed the next cut, if there is one, and for what was true of another process when the first call was answered to be known to have changed (roll-call.ts). */
export const COVERED_TICKS = 6;
/**
 * Each height takes back what so many ticks before it counted for. At the tip it has at least two and a half ticks (rule 3). It is what those ticks themselves counted for: where it was the last one's worth times two, a member whose
 * answers made only that one worth much kept others listening for ever.
 */
export const HEIGHT_TICKS = 2;
/** So many ticks with too few neighbours count as one. */
export const SLOW_TICKS = 8;
/** An earlier process of this key can have been a height ahead of what its neighbours know now. The one after that is new. */
const NEW_HEIGHTS = 2;

const NOBODY: Neighbours = { members: [], named: 0 };
const FULL = LISTEN_TICKS * SLOW_TICKS;
const fullOf = (isCovered: boolean): number => (isCovered ? COVERED_TICKS * SLOW_TICKS : FULL);

/** The log has messages of this height or of the one before. */
const covers = (logHeight: number, height: number): boolean => logHeight >= height - 1;

const isAlone = ({ committee, self }: ConsensusState, rules: Rules): boolean =>
  self >= 0 && rules.isQuorum(committee.stake(self), committee.total);

/** For a member that starts. `logHeight` is the last height of its log, -1 where it has none. */
export function listenFirst(state: ConsensusState, logHeight: number): void {
  const isCovered = covers(logHeight, state.height);
  state.ownKey.ownFrom = isCovered ? logHeight : UNKNOWN_HEIGHT;
  state.ownKey.arriving = LISTEN_TICKS;
  state.ownKey.listens = true;
  state.listening = { logHeight, ticks: fullOf(isCovered), begins: false };
}

/** At every height, until it has listened; and from the start where the key has a seat that it did not have before: neighbours know members alone, so nobody could say until now whether it runs elsewhere. */
export function listenOn(state: ConsensusState, before: Pick<ConsensusState, 'height' | 'listening' | 'self'>): void {
  const { ownKey } = state;
  const { worths } = ownKey;
  // Each tick is taken back once: heights that end within one tick would take it back again and again.
  ownKey.worths = [];
  const whole = worths.filter((worth) => worth === SLOW_TICKS).length;
  if (ownKey.arriving > 0) ownKey.arriving = Math.min(LISTEN_TICKS, ownKey.arriving + whole);
  const hasNewSeat = ownKey.listens && before.self < 0 && state.self >= 0;
  if (before.listening === undefined) {
    // Nothing can have been signed with it lately: only another process has to be found.
    if (hasNewSeat) state.listening = { logHeight: -1, ticks: fullOf(true), begins: false };
    return;
  }
  const { logHeight, ticks } = before.listening;
  const isCovered = covers(logHeight, state.height);
  const full = fullOf(isCovered);
  const isPassed = !isCovered && covers(logHeight, before.height);
  const left = isPassed ? full : Math.min(full, ticks + worths.reduce((sum, worth) => sum + worth, 0));
  state.listening = { logHeight, ticks: hasNewSeat ? Math.max(left, fullOf(true)) : left, begins: false };
  // A log that is older than the height may be older than the key's last vote too.
  if (!isCovered) ownKey.ownFrom = UNKNOWN_HEIGHT;
}

/** Votes of the own key came that may be from before its log was lost. */
export function listenAnew(state: ConsensusState): void {
  state.listening = { logHeight: -1, ticks: FULL, begins: state.listening?.begins ?? false };
}

/**
 * The process did not run for a while (presence.ts). Its own votes may come that were made after the copy of its memory: so it is as without a log, and a vote that it does not know is no reason to stop. Members that all slept together listen
 * to each other, and no height takes anything back meanwhile: they go on together. A key without a seat listens when it gets one.
 */
export function listenAfterAway(state: ConsensusState): void {
  const { ownKey } = state;
  if (!ownKey.listens || (state.self < 0 && state.listening === undefined)) return;
  Object.assign(ownKey, { ownFrom: UNKNOWN_HEIGHT, newFrom: UNKNOWN_HEIGHT, arriving: LISTEN_TICKS, worths: [] });
  listenAnew(state);
}

/** Whether a vote of the height before was made with this member's key, and not by it: a process that is slow votes when the others have decided. */
export function isOwnLate(state: ConsensusState, vote: Vote): boolean {
  const { height, member } = vote;
  const { listening, last, committee, self } = state;
  // At the heights of its log it was itself: others may have its precommit, though the certificate in its store was complete before.
  if (listening === undefined || height <= listening.logHeight || isSettled(state, height)) return false;
  // Everybody has it, and anybody can send it again.
  if (last !== undefined && seenVote(last, vote)?.cut === vote.cut) return false;
  const [voter, own] = [last?.committee.members[member], committee.members[self]];
  return (
    height === last?.height && voter !== undefined && own !== undefined && equalBytes(voter.publicKey, own.publicKey)
  );
}

/** A node that has no seat has nothing to sign. */
export const isListening = ({ listening, self }: ConsensusState): boolean => self >= 0 && listening !== undefined;

/** How many cuts it still listens at the tip, where enough members are there. With fewer, and while it is behind, it takes longer. */
export const cutsLeft = (state: ConsensusState): number =>
  isListening(state) ? Math.ceil((state.listening?.ticks ?? 0) / SLOW_TICKS / (TICKS_OF_A_CUT - HEIGHT_TICKS)) : 0;

/** A tick has gone by. True where the height that waited begins now. */
export function listened(state: ConsensusState, company: Company | undefined, rules: Rules): boolean {
  const { listening, ownKey } = state;
  if (listening === undefined && ownKey.arriving === 0) return false;
  const worth = worthOf(state, company, rules);
  ownKey.worths = [...ownKey.worths, worth].slice(-HEIGHT_TICKS);
  // Few neighbours may all lie: what they keep from it must not become a reason to stop.
  if (ownKey.arriving > 0 && worth === SLOW_TICKS) {
    ownKey.arriving--;
    if (ownKey.arriving === 0) ownKey.newFrom = state.height + NEW_HEIGHTS;
  }
  if (listening === undefined) return false;
  listening.ticks = Math.max(0, listening.ticks - worth);
  if (listening.ticks > 0) return false;
  state.listening = undefined;
  return listening.begins;
}

function worthOf(state: ConsensusState, company: Company | undefined, rules: Rules): number {
  // Behind for sure: a cut is final, and not executed yet.
  if (hasFinal(state)) return 0;
  if (company === undefined || isAlone(state, rules)) return SLOW_TICKS;
  const { total } = state.committee;
  const { ahead, taken = NOBODY } = company;
  // An honest one is further. It may not keep any more what would show it: then only its word is left.
  if (isNobody(state, company) || rules.isThird(stakeOf(state, ahead), total)) return 0;
  const isEnough = rules.isThird(stakeOf(state, company), total);
  if (taken.members.length + taken.named > 0)
    // An honest one says that the key runs elsewhere, or nobody who could is against it. A liar among many makes it slow, and no more.
    return isEnough && !rules.isThird(stakeOf(state, taken), total) ? 1 : 0;
  return isEnough ? SLOW_TICKS : 1;
}

/** Those that did not answer are not there. */
function isNobody({ self }: ConsensusState, { members, named, ahead = NOBODY, taken = NOBODY }: Company): boolean {
  const all = [...members, ...ahead.members, ...taken.members];
  return named + ahead.named + taken.named === 0 && all.every((member) => member === self);
}

/** Of those that proved their key. A connection that proved nothing has none, though the operator named it: seats with little stake are cheap, and connections cost nothing. */
function stakeOf({ committee, self }: ConsensusState, { members }: Neighbours = NOBODY): bigint {
  let stake = 0n;
  for (const member of new Set(members)) if (member !== self) stake += committee.stake(member);
  return stake;
}

/** Why a member that has a seat signs nothing; undefined where it signs, or will within a few cuts. */
export type Waits = 'nobody' | 'few' | 'ahead' | 'taken' | 'store';

export function waitsFor(state: ConsensusState, company: Company, rules: Rules = RULES): Waits | undefined {
  const { committee, self, recovered, height } = state;
  if (self < 0 || state.stopped) return undefined;
  // What its log says it signed is further than its store: until it has those cuts it cannot know what it would sign.
  if ((recovered?.height ?? 0) > height) return 'store';
  if (!isListening(state) || isAlone(state, rules)) return undefined;
  if (isNobody(state, company)) return 'nobody';
  if (rules.isThird(stakeOf(state, company.ahead), committee.total)) return 'ahead';
  if (worthOf(state, company, rules) === 0 && !hasFinal(state)) return 'taken';
  return rules.isThird(stakeOf(state, company), committee.total) ? undefined : 'few';
}

/** Whether members of a quorum are connected, this one among them. */
export function isMet(state: ConsensusState, company: Company | undefined, rules: Rules): boolean {
  const { committee, self } = state;
  if (company === undefined) return true;
  const own = self >= 0 ? committee.stake(self) : 0n;
  const { ahead, taken, silent } = company;
  const there = [company, ahead, taken, silent].reduce((sum, some) => sum + stakeOf(state, some), own);
  return rules.isQuorum(there, committee.total);
}

function hasFinal({ step, rounds }: ConsensusState): boolean {
  if (step === 'decided') return true;
  for (const { precommits } of rounds.values()) if ((precommits.quorum ?? NIL) !== NIL) return true;
  return false;
}
