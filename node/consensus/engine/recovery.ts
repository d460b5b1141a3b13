/**
 * Restores the state of a restarted member (consensus rules 11 and 12): the messages that it signed at the last height
 * of its log, its lock and its valid value with their proofs. It continues after its last signed message; anything it
 * had not signed it may decide again.
 */

import { CodedError } from '../../../protocol/coded-error.ts';
import type { Committee } from './committee.ts';
import type { LogRecord, Recovered, Unsigned } from './effects.ts';
import { RULES, type Rules } from './rules.ts';
import { type ConsensusState, createState, type LastCut, roundOf, stepNumber } from './state.ts';
import { addVote, type CutName, isProof, NIL, PREVOTE } from './votes.ts';

export const RECOVERY_ERROR_CODES = ['log_lock_unproven', 'log_damaged', 'log_foreign'] as const;
export type RecoveryErrorCode = (typeof RECOVERY_ERROR_CODES)[number];

/** A log from which a validator must not sign. */
export class RecoveryError extends CodedError<RecoveryErrorCode> {
  override readonly name = 'RecoveryError';
}

/** Combines the records of a log; undefined if there are none. Heights only go up, and only the last one matters. */
export function recover(records: readonly LogRecord[]): Recovered | undefined {
  const last = records.at(-1);
  if (last === undefined) return undefined;
  const own = records.filter(({ height }) => height === last.height);
  const { message: _, ...newest } = last;
  const { lockedRound, locked, validRound, valid } = last;
  const recovered = {
    ...newest,
    messages: own.map(({ message }) => message),
    polkas: own.flatMap(({ polkas }) => polkas),
    proposals: own.flatMap(({ proposals }) => proposals),
  };
  prove(recovered, lockedRound, locked, 'lock');
  prove(recovered, validRound, valid, 'valid value');
  return recovered;
}

function prove({ height, polkas, proposals }: Recovered, round: number, cut: CutName, what: string): void {
  if (round < 0 && cut === NIL) return;
  const proven = polkas.some((polka) => polka.round === round && polka.cut === cut && polka.height === height);
  if (!proven || !proposals.some((proposal) => proposal.cut === cut))
    throw new RecoveryError(
      'log_lock_unproven',
      `the log has a ${what} of height ${height}, round ${round}, without its proof`,
    );
}

/** The state with which a node starts: the height after its newest cut, with the log's records of it. */
export function openState(
  height: number,
  committee: Committee,
  self: number,
  last: LastCut | undefined,
  recovered: Recovered | undefined,
  rules: Rules = RULES,
): ConsensusState {
  const ahead = recovered !== undefined && recovered.height >= height ? recovered : undefined;
  const state = createState(height, committee, self, last, ahead, rules);
  if (ahead?.height === height) restore(state, ahead);
  return state;
}

/** Advances a fresh state of the log's height to its last signed message. */
export function restore(state: ConsensusState, recovered: Recovered): void {
  for (const polka of recovered.polkas) {
    if (polka.kind !== PREVOTE || !isProof(polka, state.committee, state.rules))
      throw new RecoveryError(
        'log_lock_unproven',
        `the polka of round ${polka.round} in the log does not prove anything`,
      );
    const { prevotes } = roundOf(state, polka.round);
    for (const vote of polka.votes) addVote(prevotes, vote, state.committee, state.rules);
    prevotes.quorum = polka.cut;
    prevotes.proof = polka;
    state.writtenPolkas.add(polka.round);
  }
  for (const proposal of recovered.proposals) {
    state.values.set(proposal.cut, { proposal, verdict: 'unknown', faulted: false, timely: false });
    state.writtenProposals.add(proposal.cut);
  }
  const { lockedRound, locked, validRound, valid } = recovered;
  Object.assign(state, { lockedRound, locked, validRound, valid });
  for (const message of recovered.messages) takeOwn(state, message);
}

function takeOwn(state: ConsensusState, message: Unsigned): void {
  const [kind, { round, cut }] =
    message.type === 'proposal' ? [0 as const, message.proposal] : [message.vote.kind, message.vote];
  const step = stepNumber(round, kind);
  state.own.set(step, cut);
  if (step > state.signedStep) {
    state.signedStep = step;
    state.round = round;
    state.resume = kind === 0 ? 'propose' : kind === PREVOTE ? 'prevote' : 'precommit';
  }
  const slot = roundOf(state, round);
  if (message.type === 'proposal') {
    const { proposal } = message;
    slot.proposal = proposal;
    if (!state.values.has(cut)) state.values.set(cut, { proposal, verdict: 'unknown', faulted: false, timely: true });
    else (state.values.get(cut) as { timely: boolean }).timely = true;
  } else addVote(kind === PREVOTE ? slot.prevotes : slot.precommits, message.vote, state.committee, state.rules);
}
