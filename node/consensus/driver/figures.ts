/** Figures of consensus for operators: how long the steps of a cut take, and what goes wrong (docs/node.md, Metrics). They are taken from the inputs and outputs of the engine. */
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Effect, Event } from '../engine/effects.ts';
import type { ConsensusState, Step } from '../engine/state.ts';

export const CONSENSUS_STEPS = ['propose', 'prevote', 'precommit', 'execute', 'commit'] as const;
export type ConsensusStep = (typeof CONSENSUS_STEPS)[number];

/** Name and help of each metric. */
export const CONSENSUS_COUNTS = {
  rounds: ['svc_node_consensus_rounds_total', 'Rounds begun after the first of a height'],
  missed_proposals: ['svc_node_consensus_missed_proposals_total', 'Rounds in which no proposal came in time'],
  late_votes: ['svc_node_consensus_late_votes_total', 'Precommits that came after their cut was final'],
  own_votes_missing: [
    'svc_node_consensus_own_votes_missing_total',
    'Cuts decided here before a precommit of this validator was in',
  ],
  lost_messages: [
    'svc_node_consensus_lost_messages_total',
    'Messages of neighbours that were lost by an error of this node',
  ],
  evidence: ['svc_node_consensus_evidence_total', 'Members that voted twice'],
} as const;
export type ConsensusCount = keyof typeof CONSENSUS_COUNTS;

export type ConsensusFigures = {
  step(step: ConsensusStep, seconds: number): void;
  count(what: ConsensusCount): void;
};

const MEASURED: ReadonlySet<Step> = new Set(['propose', 'prevote', 'precommit']);

/** Called with every event after the engine has processed it. */
export class ConsensusWatch {
  readonly #figures: ConsensusFigures;
  readonly #steady: SteadyClock;
  #step: Step;
  #round: number;
  #since: number;

  constructor(state: ConsensusState, figures: ConsensusFigures, steady: SteadyClock) {
    this.#figures = figures;
    this.#steady = steady;
    this.#step = state.step;
    this.#round = state.round;
    this.#since = steady();
  }

  note(event: Event, effects: readonly Effect[], state: ConsensusState): void {
    const { count } = this.#figures;
    for (const effect of effects) {
      if (effect.do === 'evidence') count('evidence');
      if (effect.do === 'decide' && state.self >= 0 && effect.proof.votes.every(({ member }) => member !== state.self))
        count('own_votes_missing');
    }
    if (event.type === 'vote' && event.vote.height < state.height) count('late_votes');
    const isRunning = event.type === 'timeout' && event.height === state.height && event.round === this.#round;
    if (isRunning && event.kind === 'propose' && this.#step === 'propose') {
      if (state.rounds.get(event.round)?.proposal === undefined) count('missed_proposals');
    }
    this.#move(state);
  }

  #move({ step, round }: ConsensusState): void {
    if (step === this.#step && round === this.#round) return;
    const now = this.#steady();
    if (MEASURED.has(this.#step)) this.#figures.step(this.#step as ConsensusStep, (now - this.#since) / 1000);
    if (round > this.#round && round > 0) this.#figures.count('rounds');
    this.#step = step;
    this.#round = round;
    this.#since = now;
  }
}
