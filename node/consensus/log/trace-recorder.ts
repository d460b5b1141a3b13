/**
 * Records the trace of the running height: how it began and every event since, so that `svcd consensus dump --trace`
 * returns a trace that can be replayed (trace.ts).
 */
import type { Event } from '../engine/effects.ts';
import { lastProof } from '../engine/last-cut.ts';
import type { ConsensusState } from '../engine/state.ts';
import { encodeTrace, type TraceStart } from './trace.ts';

/** Limit of recorded events: a longer height is recorded only up to here. */
const MAX_EVENTS = 8_192;

export class TraceRecorder {
  #start: TraceStart;
  #events: Event[] = [];

  constructor(state: ConsensusState) {
    this.#start = startOf(state);
  }

  /** After the engine has taken the event. */
  note(event: Event, state: ConsensusState): void {
    if (event.type !== 'height' || state.height !== event.height) {
      if (this.#events.length < MAX_EVENTS) this.#events.push(event);
      return;
    }
    this.#start = startOf(state);
    this.#events = [...earlyEvents(state)];
  }

  get text(): string {
    return encodeTrace(this.#start, this.#events);
  }
}

function startOf(state: ConsensusState): TraceStart {
  const { height, committee, self, last, recovered, listening, ownKey, tickHeights } = state;
  const proof = lastProof(state);
  return {
    height,
    committee,
    self,
    ...(last !== undefined && proof !== undefined && { last: { proof, committee: last.committee } }),
    ...(recovered && { recovered }),
    ...(listening && { listening: { ...listening } }),
    ownKey: { ...ownKey },
    tickHeights,
  };
}

/** Messages that arrived before the height began. */
function* earlyEvents(state: ConsensusState): Generator<Event> {
  for (const { proposal, prevotes, precommits } of state.rounds.values()) {
    if (proposal !== undefined) yield { type: 'proposal', proposal, timely: false };
    for (const vote of [...prevotes.votes, ...precommits.votes])
      if (vote !== undefined && vote.member !== state.self) yield { type: 'vote', vote };
  }
}
