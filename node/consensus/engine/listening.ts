/**
 * Listening before the first signature (consensus rule 21). A member that starts does not know what was signed with its
 * key meanwhile: the key may run elsewhere, its log may be lost, log and store may be an old copy. So it always listens
 * first. If it then hears a vote of its own key, it does not sign; otherwise it would find out by voting twice, which
 * costs its whole bond.
 *
 * Only time in which it would have heard such a vote counts. Neither clocks nor messages can measure it: clocks may be
 * wrong, and old messages can be replayed. Two things cannot be forged. First, connections: members that proved their
 * key, each with its stake; with more than a third of the stake, at least one is honest. Second, the pace: at the tip
 * heights take their normal time, while a node that is behind and has an honest neighbour gets them much faster. So
 * every new height takes back a part of the time: a node that is behind never finishes listening, and one at the tip
 * does.
 */
import { equalBytes } from '../../../protocol/bytes.ts';
import type { Company, Neighbours } from './effects.ts';
import { seenVote } from './last-cut.ts';
import { isSettled } from './own-key.ts';
import { TICKS_OF_A_CUT } from './pace.ts';
import { type ConsensusState, UNKNOWN_HEIGHT } from './state.ts';
import { NIL, type Vote } from './votes.ts';

/**
 * Ticks (rule 15) that a member listens. Including the time that heights take back, this is more than three cuts, so
 * that at least one is heard from beginning to end.
 */
export const LISTEN_TICKS = 12;
/**
 * The same if its log covers the height: long enough to receive the next cut, if there is one, and for the first
 * answers about another process to be outdated (roll-call.ts).
 */
export const COVERED_TICKS = 6;
/**
 * Each height takes back the value of this many preceding ticks. At the tip a height has at least two and a half ticks
 * (rule 3). The actual values of those ticks are used: with twice the value of the last one, a member that gave only
 * that tick a high value kept others listening for ever.
 */
export const HEIGHT_TICKS = 2;
/** This many ticks count as one for each doubt: too few neighbours, or one of them says that the key runs elsewhere. */
export const SLOW_TICKS = 8;
/** What a tick without doubts is worth. */
export const WHOLE_TICK = SLOW_TICKS ** 2;
/** An earlier process of this key can have been one height ahead of its neighbours. The height after that is new. */
const NEW_HEIGHTS = 2;

const NOBODY: Neighbours = { members: [], named: 0 };
const FULL = LISTEN_TICKS * WHOLE_TICK;
const fullOf = (isCovered: boolean): number => (isCovered ? COVERED_TICKS * WHOLE_TICK : FULL);

/** The log has messages of this height or of the one before. */
const covers = (logHeight: number, height: number): boolean => logHeight >= height - 1;

const isAlone = ({ committee, self, rules }: ConsensusState): boolean =>
  self >= 0 && rules.isQuorum(committee.stake(self), committee.total);

/** For a member that starts. `logHeight` is the last height of its log, -1 where it has none or one with a torn end. */
export function listenFirst(state: ConsensusState, logHeight: number): void {
  const isCovered = covers(logHeight, state.height);
  state.ownKey.ownFrom = isCovered ? logHeight : UNKNOWN_HEIGHT;
  state.ownKey.arriving = LISTEN_TICKS;
  state.ownKey.listens = true;
  state.listening = { logHeight, ticks: fullOf(isCovered), begins: false };
}

/**
 * At every height, until it has listened; and again when the key gets a new seat: neighbours track only members, so
 * until now none could tell whether it runs elsewhere.
 */
export function listenOn(state: ConsensusState, before: Pick<ConsensusState, 'height' | 'listening' | 'self'>): void {
  const { ownKey } = state;
  const { worths } = ownKey;
  // Each tick is taken back once: several heights within one tick would take it back repeatedly.
  ownKey.worths = [];
  const whole = worths.filter((worth) => worth === WHOLE_TICK).length;
  if (ownKey.arriving > 0) ownKey.arriving = Math.min(LISTEN_TICKS, ownKey.arriving + whole);
  const hasNewSeat = ownKey.listens && before.self < 0 && state.self >= 0;
  if (before.listening === undefined) {
    // The key cannot have signed anything recently: only another process has to be detected.
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

/** Votes of the own key arrived that may be from before its log was lost. */
export function listenAnew(state: ConsensusState): void {
  state.listening = { logHeight: -1, ticks: FULL, begins: state.listening?.begins ?? false };
}

/**
 * The process did not run for a while (presence.ts). It may receive own votes that were made after its memory was
 * copied: so it behaves as without a log, and an unknown own vote is no reason to stop. Members that were all suspended
 * together listen to each other, and no height takes time back meanwhile: they continue together. A key without a seat
 * listens when it gets one.
 */
export function listenAfterAway(state: ConsensusState): void {
  const { ownKey } = state;
  if (!ownKey.listens || (state.self < 0 && state.listening === undefined)) return;
  Object.assign(ownKey, { ownFrom: UNKNOWN_HEIGHT, newFrom: UNKNOWN_HEIGHT, arriving: LISTEN_TICKS, worths: [] });
  listenAnew(state);
}

/**
 * Whether a vote of the previous height was made with this member's key by another process: a slow process votes after
 * the others have decided.
 */
export function isOwnLate(state: ConsensusState, vote: Vote): boolean {
  const { height, member } = vote;
  const { listening, last, committee, self } = state;
  // At the heights of its log this process voted itself: others may have its precommit, although the certificate in its
  // store was complete without it.
  if (listening === undefined || height <= listening.logHeight || isSettled(state, height)) return false;
  // The vote is public, and anybody can replay it.
  if (last !== undefined && seenVote(last, vote)?.cut === vote.cut) return false;
  const [voter, own] = [last?.committee.members[member], committee.members[self]];
  return (
    height === last?.height && voter !== undefined && own !== undefined && equalBytes(voter.publicKey, own.publicKey)
  );
}

/** A node that has no seat has nothing to sign. */
export const isListening = ({ listening, self }: ConsensusState): boolean => self >= 0 && listening !== undefined;

/** How many cuts it still listens, if it is at the tip and enough members are connected. Otherwise it takes longer. */
export const cutsLeft = (state: ConsensusState): number =>
  isListening(state) ? Math.ceil((state.listening?.ticks ?? 0) / WHOLE_TICK / (TICKS_OF_A_CUT - HEIGHT_TICKS)) : 0;

/** Handles a tick. True if the waiting height begins now. */
export function listened(state: ConsensusState, company: Company | undefined): boolean {
  const { listening, ownKey } = state;
  if (listening === undefined && ownKey.arriving === 0) return false;
  const worth = worthOf(state, company);
  ownKey.worths = [...ownKey.worths, worth].slice(-HEIGHT_TICKS);
  // A few neighbours may all lie by omission: that must not become a reason to stop.
  if (ownKey.arriving > 0 && worth === WHOLE_TICK) {
    ownKey.arriving--;
    if (ownKey.arriving === 0) ownKey.newFrom = state.height + NEW_HEIGHTS;
  }
  if (listening === undefined) return false;
  listening.ticks = Math.max(0, listening.ticks - worth);
  if (listening.ticks > 0) return false;
  state.listening = undefined;
  return listening.begins;
}

function worthOf(state: ConsensusState, company: Company | undefined): number {
  // Certainly behind: a cut is final but not executed yet.
  if (hasFinal(state)) return 0;
  if (company === undefined || isAlone(state)) return WHOLE_TICK;
  const { total } = state.committee;
  // An honest member is ahead. It may have deleted the cuts that prove it: then its statement has to suffice.
  if (isNobody(state, company) || state.rules.isThird(stakeOf(state, company.ahead), total)) return 0;
  const worth = isTaken(company) ? WHOLE_TICK / SLOW_TICKS : WHOLE_TICK;
  if (isTaken(company) && !isContradicted(state, company)) return 0;
  return state.rules.isThird(stakeOf(state, company), total) ? worth : worth / SLOW_TICKS;
}

const isTaken = ({ taken = NOBODY }: Company): boolean => taken.members.length + taken.named > 0;

/**
 * Members of a third or less say that the key runs elsewhere, and some member that it does not. These may be few: a
 * liar can hold back what the others say where it is their relay, and a member with much stake has few others.
 */
const isContradicted = (state: ConsensusState, company: Company): boolean =>
  stakeOf(state, company) > 0n && !state.rules.isThird(stakeOf(state, company.taken), state.committee.total);

/** Members that did not answer do not count as connected. */
function isNobody({ self }: ConsensusState, { members, named, ahead = NOBODY, taken = NOBODY }: Company): boolean {
  const all = [...members, ...ahead.members, ...taken.members];
  return named + ahead.named + taken.named === 0 && all.every((member) => member === self);
}

/**
 * Stake of members that proved their key. A connection without proof has none, even if named by the operator:
 * connections cost nothing.
 */
function stakeOf({ committee, self }: ConsensusState, { members }: Neighbours = NOBODY): bigint {
  let stake = 0n;
  for (const member of new Set(members)) if (member !== self) stake += committee.stake(member);
  return stake;
}

/** Why a member with a seat does not sign; undefined if it signs, or will within a few cuts. */
export type Waits = 'nobody' | 'few' | 'ahead' | 'taken' | 'store';

export function waitsFor(state: ConsensusState, company: Company): Waits | undefined {
  const { committee, self, recovered, height } = state;
  if (self < 0 || state.stopped) return undefined;
  // Its log is ahead of its store: until it has those cuts it cannot know what to sign.
  if ((recovered?.height ?? 0) > height) return 'store';
  if (!isListening(state) || isAlone(state)) return undefined;
  if (isNobody(state, company)) return 'nobody';
  if (state.rules.isThird(stakeOf(state, company.ahead), committee.total)) return 'ahead';
  const isEnough = state.rules.isThird(stakeOf(state, company), committee.total);
  if (isTaken(company) && !(isEnough && isContradicted(state, company))) return 'taken';
  return isEnough ? undefined : 'few';
}

/** Whether members of a quorum are connected, this one among them. */
export function isMet(state: ConsensusState, company: Company | undefined): boolean {
  const { committee, self } = state;
  if (company === undefined) return true;
  const own = self >= 0 ? committee.stake(self) : 0n;
  const { ahead, taken, silent } = company;
  const there = [company, ahead, taken, silent].reduce((sum, some) => sum + stakeOf(state, some), own);
  return state.rules.isQuorum(there, committee.total);
}

function hasFinal({ step, rounds }: ConsensusState): boolean {
  if (step === 'decided') return true;
  for (const { precommits } of rounds.values()) if ((precommits.quorum ?? NIL) !== NIL) return true;
  return false;
}
