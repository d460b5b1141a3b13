/**
 * The consensus engine: `step(state, event)` returns the effects of one event and updates the state in place. There is
 * no clock, I/O, randomness or signing here: the same events give the same effects (docs/protocol/consensus.md).
 * Signatures of votes, proposals and proofs were checked before; intake.ts decides which are worth checking.
 */
import { equalBytes } from '../../../protocol/bytes.ts';
import { answer, askProposer, tick } from './anti-entropy.ts';
import type { Effect, Event, LogRecord, Proposal, Unsigned } from './effects.ts';
import { EARLY_ROUNDS, earlyKey, judgeProof, judgeProposal, judgeVote } from './intake.ts';
import { contraryLast, lastCutOf, watchLastRound } from './last-cut.ts';
import { isListening, isMet, listenAfterAway, listenAnew, listened, listenOn } from './listening.ts';
import { isBarred, isFromElsewhere, takeUnknown } from './own-key.ts';
import { openState } from './recovery.ts';
import { FUTURE_ROUNDS, follow, progress, propose, startRound, timeOut } from './rounds.ts';
import { type ConsensusState, roundOf, stepNumber } from './state.ts';
import { addVote, isProof, PRECOMMIT, PREVOTE, type Proof, proofOf, type Vote } from './votes.ts';

export function step(state: ConsensusState, event: Event): Effect[] {
  const out: Effect[] = [];
  take(state, event, out);
  progress(state, out);
  return out;
}

function take(state: ConsensusState, event: Event, out: Effect[]): void {
  switch (event.type) {
    case 'height':
      enterHeight(state, event, out);
      break;
    case 'begin':
      begin(state, out);
      break;
    case 'vote':
      takeVote(state, event.vote, out);
      break;
    case 'proposal':
      takeProposal(state, event.proposal, event.timely, out);
      break;
    case 'proof':
      takeProof(state, event.proof, out);
      break;
    case 'finalized':
      takeFinalized(state, event.finalized.proof, event.finalized.proposal, out);
      break;
    case 'have':
      answer(state, event, out);
      break;
    case 'built':
      takeBuilt(state, event.proposal, out);
      break;
    case 'checked':
      takeVerdict(state, event.height, event.cut, event.valid);
      break;
    case 'signed':
      takeSigned(state, event.message, event.signature, out);
      break;
    case 'timeout':
      if (event.height === state.height) timeOut(state, event.kind, event.round, out);
      break;
    case 'tick':
      if (listened(state, event.company)) begin(state, out);
      tick(state, isMet(state, event.company), out);
      follow(state, out);
      break;
    case 'away':
      wakeUp(state);
      break;
    case 'elsewhere':
      if (state.stopped) break;
      state.stopped = true;
      out.push({ do: 'stop', reason: 'key_runs_twice', vote: { height: state.height, round: state.round } });
      break;
  }
}

function enterHeight(
  state: ConsensusState,
  { height, committee, self, last: elsewhere }: Event & { type: 'height' },
  out: Effect[],
): void {
  if (height <= state.height) return;
  const decided = height === state.height + 1 ? decision(state) : undefined;
  // A member that took the cut from elsewhere still knows the votes that it saw, its own among them.
  const final = decided ? { proof: decided, committee: state.committee } : elsewhere;
  const ended = final?.proof.height === state.height ? state : undefined;
  const last = final && lastCutOf(final.proof, final.committee, ended);
  if (last !== undefined) {
    // A received proof may contain votes that the tally lacks, and the tally late ones that the proof lacks.
    const held = last.rounds.get(last.round) as Map<number, Vote>;
    for (const vote of state.rounds.get(last.round)?.precommits.votes ?? [])
      if (vote !== undefined && vote.cut === last.cut) held.set(vote.member, vote);
  }
  const { early, earlyProposals, recovered, stopped, listening, ownKey, tickHeights } = state;
  const before = { height: state.height, self: state.self, listening };
  const isSame = height === state.height + 1 && equalBytes(committee.setId, state.committee.setId);
  Object.assign(state, openState(height, committee, self, last, recovered, state.rules), {
    stopped,
    ownKey,
    tickHeights,
  });
  listenOn(state, before);
  if (!isSame) return;
  for (const proposal of earlyProposals.values()) takeProposal(state, proposal, false, out);
  for (const vote of early.values()) takeVote(state, vote, out);
}

function decision(state: ConsensusState): Proof | undefined {
  if (state.step !== 'decided') return undefined;
  for (const round of state.rounds.values()) {
    const proof = state.rules.decision(round, state);
    if (proof !== undefined && proof.cut !== '') return proof;
  }
  return undefined;
}

function begin(state: ConsensusState, out: Effect[]): void {
  if (state.step !== 'new') return;
  if (state.listening !== undefined && isListening(state)) {
    state.listening.begins = true;
    return;
  }
  const { resume } = state;
  if (resume === undefined) {
    startRound(state, 0, out);
    return;
  }
  state.step = resume;
  state.resume = undefined;
  roundOf(state, state.round);
  // An already signed proposal is not signed again; otherwise one is made.
  if (resume === 'propose') startRound(state, state.round, out);
  // The others may have received nothing: the same bytes are sent again.
  for (const message of state.recovered?.messages ?? []) out.push({ do: 'send', to: 'all', message });
}

/**
 * It continues as after a restart: it listens, and then resumes its step with new time-outs. Time-outs that expired
 * meanwhile say nothing about the other members.
 */
function wakeUp(state: ConsensusState): void {
  if (state.stopped) return;
  listenAfterAway(state);
  if (state.step === 'new' || state.step === 'decided' || state.listening === undefined) return;
  state.resume = state.step;
  state.step = 'new';
  state.listening.begins = true;
  for (const round of state.rounds.values()) Object.assign(round, { prevoteTimer: false, precommitTimer: false });
}

function takeVote(state: ConsensusState, vote: Vote, out: Effect[]): void {
  const intake = judgeVote(state, vote);
  const { member, round } = vote;
  if (intake === 'own') {
    takeUnknownOwn(state, vote, out);
    return;
  }
  const before = contraryLast(state, vote);
  if (before !== undefined && (intake === 'wanted' || intake === 'contrary')) {
    state.last?.accused.add(member);
    out.push({ do: 'evidence', first: before, second: vote });
    // The header may still refer to it (rule 9).
    if (intake === 'contrary') return;
  }
  if (intake === 'contrary') {
    state.accused.add(member);
    const isEarly = vote.height > state.height;
    const first = (isEarly ? state.early.get(earlyKey(vote)) : tallyOf(state, vote).votes[member]) as Vote;
    out.push({ do: 'evidence', first, second: vote });
    return;
  }
  if (intake !== 'wanted') return;
  if (vote.height < state.height) state.last?.rounds.get(round)?.set(member, vote);
  else if (vote.height > state.height) state.early.set(earlyKey(vote), vote);
  else {
    seen(state, member, round);
    if (round > state.round + FUTURE_ROUNDS) state.farVotes.add(member);
    else addVote(tallyOf(state, vote), vote, state.committee, state.rules);
  }
}

/** A vote of the own key that this process did not make. */
function takeUnknownOwn(state: ConsensusState, vote: Vote, out: Effect[]): void {
  const meaning = takeUnknown(state, vote);
  if (meaning === 'stop') out.push({ do: 'stop', reason: 'key_runs_twice', vote });
  if (meaning !== 'bar') return;
  listenAnew(state);
  out.push({ do: 'bar', vote });
}

function tallyOf(state: ConsensusState, vote: Pick<Vote, 'round' | 'kind'>) {
  const round = roundOf(state, vote.round);
  return vote.kind === PREVOTE ? round.prevotes : round.precommits;
}

function seen(state: ConsensusState, member: number, round: number): void {
  if (round > (state.memberRounds[member] as number)) state.memberRounds[member] = round;
}

function takeProposal(state: ConsensusState, proposal: Proposal, timely: boolean, out: Effect[]): void {
  if (judgeProposal(state, proposal) !== 'wanted') return;
  const { height, round, cut } = proposal;
  if (height > state.height) {
    if (round < EARLY_ROUNDS) state.earlyProposals.set(round, proposal);
    return;
  }
  const slot = state.rounds.get(round);
  const isNear = round <= state.round + FUTURE_ROUNDS;
  if (isNear && slot?.proposal === undefined) {
    roundOf(state, round).proposal = proposal;
    const proposer = state.committee.proposer(height, round);
    seen(state, proposer, round);
    if (round === state.round) {
      watchLastRound(state);
      askProposer(state, out);
    }
  }
  const value = state.values.get(cut);
  if (value === undefined) state.values.set(cut, { proposal, verdict: 'unknown', faulted: false, timely });
  else if (timely) value.timely = true;
}

function takeProof(state: ConsensusState, proof: Proof, out: Effect[], isFinal = false): void {
  if (judgeProof(state, proof) !== 'wanted' || !isProof(proof, state.committee, state.rules)) return;
  const tally = tallyOf(state, proof);
  for (const vote of proof.votes) {
    if (vote.member === state.self && judgeVote(state, vote) === 'own') {
      // Earlier final cuts may contain its vote, and nothing more is signed there.
      if (!isFinal || isFromElsewhere(state, vote.height)) takeUnknownOwn(state, vote, out);
    }
    seen(state, vote.member, vote.round);
    const before = addVote(tally, vote, state.committee, state.rules);
    if (before === undefined || before.cut === vote.cut || state.accused.has(vote.member)) continue;
    state.accused.add(vote.member);
    out.push({ do: 'evidence', first: before, second: vote });
  }
  if (tally.quorum === proof.cut) return;
  tally.quorum = proof.cut;
  tally.proof = proof;
}

/**
 * A certificate proves its cut: no proposer's signature is needed. It does not prove the round of the previous cut: the
 * round that decided here is used.
 */
function takeFinalized(state: ConsensusState, proof: Proof, proposal: Proposal, out: Effect[]): void {
  if (proof.height !== state.height || proof.kind !== PRECOMMIT || proof.cut !== proposal.cut) return;
  takeProof(state, proof, out, true);
  if (state.rounds.get(proof.round)?.precommits.quorum !== proof.cut || state.values.has(proof.cut)) return;
  const lastRound = state.last?.round ?? 0;
  const value = { proposal: { ...proposal, lastRound }, faulted: false, timely: false };
  state.values.set(proof.cut, { ...value, verdict: 'unknown' });
}

function takeBuilt(state: ConsensusState, proposal: Proposal, out: Effect[]): void {
  const { height, round, cut } = proposal;
  if (height !== state.height || round !== state.round || state.step !== 'propose') return;
  if (state.own.has(stepNumber(round, 0))) return;
  state.values.set(cut, { proposal, verdict: 'valid', faulted: false, timely: true });
  propose(state, proposal, out);
}

function takeVerdict(state: ConsensusState, height: number, cut: string, valid: boolean): void {
  const value = height === state.height ? state.values.get(cut) : undefined;
  if (value !== undefined && value.verdict !== 'valid') value.verdict = valid ? 'valid' : 'invalid';
}

/** Rule 11: written, then sent. A signature that arrives after its height is dropped. */
function takeSigned(state: ConsensusState, unsigned: Unsigned, signature: Vote['signature'], out: Effect[]): void {
  const message: Unsigned =
    unsigned.type === 'proposal'
      ? { type: 'proposal', proposal: { ...unsigned.proposal, signature } }
      : { type: 'vote', vote: { ...unsigned.vote, signature } };
  const { height, round, cut } = message.type === 'proposal' ? message.proposal : message.vote;
  const kind = message.type === 'proposal' ? 0 : message.vote.kind;
  if (height !== state.height || state.stopped || isBarred(state)) return;
  if (state.own.get(stepNumber(round, kind)) !== cut) return;
  if (message.type === 'proposal') {
    const { proposal } = message;
    roundOf(state, round).proposal = proposal;
    seen(state, state.self, round);
    const value = state.values.get(cut);
    if (value === undefined || value.proposal.signature.length === 0)
      state.values.set(cut, { proposal, verdict: value?.verdict ?? 'valid', faulted: false, timely: true });
    else value.timely = true;
  } else {
    addVote(tallyOf(state, message.vote), message.vote, state.committee, state.rules);
    seen(state, state.self, round);
  }
  const write: Effect = { do: 'write', record: recordOf(state, message) };
  out.push(...state.rules.signed(write, { do: 'send', to: 'all', message }));
  if (message.type === 'proposal' && message.proposal.validRound >= 0) {
    const kept = state.rounds.get(message.proposal.validRound);
    const proof = kept && proofOf(kept.prevotes);
    if (proof !== undefined) out.push({ do: 'send', to: 'all', message: { type: 'proof', proof } });
  }
}

function recordOf(state: ConsensusState, message: Unsigned): LogRecord {
  const { height, lockedRound, locked, validRound, valid } = state;
  const polkas: Proof[] = [];
  const proposals: Proposal[] = [];
  for (const [round, cut] of [
    [lockedRound, locked],
    [validRound, valid],
  ] as const) {
    if (round < 0) continue;
    const kept = state.rounds.get(round);
    const polka = kept && proofOf(kept.prevotes);
    if (polka !== undefined && !state.writtenPolkas.has(round)) {
      polkas.push(polka);
      state.writtenPolkas.add(round);
    }
    const value = state.values.get(cut);
    if (value !== undefined && !state.writtenProposals.has(cut)) {
      proposals.push(value.proposal);
      state.writtenProposals.add(cut);
    }
  }
  return { height, message, lockedRound, locked, validRound, valid, polkas, proposals };
}
