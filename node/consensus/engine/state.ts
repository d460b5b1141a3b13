/**
 * The state of a member in one height, complete for the engine. It is changed in place, and only by `step` (engine.ts).
 */
import type { Committee } from './committee.ts';
import type { Peer, Proposal, Recovered } from './effects.ts';
import { RULES, type Rules } from './rules.ts';
import { type CutName, emptyTally, NIL, type Tally, type Vote } from './votes.ts';

/** `new`: votes are collected, the time of the first round has not come. */
export type Step = 'new' | 'propose' | 'prevote' | 'precommit' | 'decided';

export type Round = {
  readonly round: number;
  proposal: Proposal | undefined;
  readonly prevotes: Tally;
  readonly precommits: Tally;
  prevoteTimer: boolean;
  precommitTimer: boolean;
};

export type Value = {
  readonly proposal: Proposal;
  verdict: 'unknown' | 'checking' | 'valid' | 'invalid';
  faulted: boolean;
  timely: boolean;
};

/** The previous cut: precommits for it are still collected, because the next header lists its signers (rule 9). */
export type LastCut = {
  readonly height: number;
  readonly cut: CutName;
  readonly committee: Committee;
  readonly round: number;
  /** By round: the one that decided here, and the one that the proposal of the current round refers to. */
  readonly rounds: Map<number, Map<number, Vote>>;
  /**
   * All votes of that height at its end, the members accused so far, and this node's index: double votes are also
   * detected by late votes (rule 10).
   */
  readonly seen: ReadonlyMap<number, Round>;
  readonly accused: Set<number>;
  readonly self: number;
};

/** State of a member that listens before it signs (listening.ts). */
export type Listening = {
  /** The last height of its log. */
  readonly logHeight: number;
  /** How long it still listens, in parts of a tick. */
  ticks: number;
  /** The start time of the height has passed meanwhile. */
  begins: boolean;
};

/** Knowledge about the votes of its key (own-key.ts). Kept from height to height. */
export type OwnKey = {
  /** It listens before it signs, when it starts and when its key gets a seat. */
  listens: boolean;
  /** This height and later ones began when the process was at the tip. */
  newFrom: number;
  /** From this height on, every vote of the key is in the log or was made here. */
  ownFrom: number;
  /** Up to this height nothing is signed: the key voted there, but the log does not contain it. */
  barred: number;
  /** Ticks until this process is known to be at the tip; then `newFrom` is known. */
  arriving: number;
  /** Values of the last ticks, in fractions of a tick, newest last: the next height takes these back. */
  worths: readonly number[];
};

/** No such height is known. A number that text formats can represent, unlike infinity. */
export const UNKNOWN_HEIGHT = Number.MAX_SAFE_INTEGER;

export type ConsensusState = {
  height: number;
  committee: Committee;
  /** This node's index in the committee; -1 if it has none. */
  self: number;
  round: number;
  step: Step;
  lockedRound: number;
  locked: CutName;
  validRound: number;
  valid: CutName;
  rounds: Map<number, Round>;
  values: Map<CutName, Value>;
  /** Votes that this member signed, or is about to, at this height: step (round and kind) to cut. */
  own: Map<number, CutName>;
  /** Nothing at or below this step of the height is signed any more. */
  signedStep: number;
  /** The latest round in which each member was seen. */
  memberRounds: number[];
  /** Members whose vote of a distant round was checked since the last tick. */
  farVotes: Set<number>;
  accused: Set<number>;
  last: LastCut | undefined;
  /** Votes and proposals for the next height that came early. */
  early: Map<number, Vote>;
  earlyProposals: Map<number, Proposal>;
  /** Contents of the log for this height. */
  writtenPolkas: Set<number>;
  writtenProposals: Set<CutName>;
  /** The step that the member was in when it was stopped; resumed when the time of the height has come. */
  resume: Step | undefined;
  /** Contents of the log at the start, until its height is past. */
  recovered: Recovered | undefined;
  /** Signs no more: the key runs elsewhere. */
  stopped: boolean;
  /** Until it has listened. */
  listening: Listening | undefined;
  ownKey: OwnKey;
  /** Answers given to each neighbour since the last tick, by what they are counted with. */
  answered: Map<Peer, number>;
  /** The member's round and step at the last tick. */
  tickStep: string;
  /** The heights at the last two ticks, the newer one first. Kept from height to height. */
  tickHeights: readonly [number, number];
  /** Ticks since then in which a quorum was connected. */
  ticksThere: number;
  wantCut: CutName;
  /** What the member goes by; a test gives it a wrong one. */
  readonly rules: Rules;
};

export function createState(
  height: number,
  committee: Committee,
  self: number,
  last?: LastCut,
  recovered?: Recovered,
  rules: Rules = RULES,
): ConsensusState {
  return {
    height,
    committee,
    self,
    round: 0,
    step: 'new',
    lockedRound: -1,
    locked: NIL,
    validRound: -1,
    valid: NIL,
    rounds: new Map(),
    values: new Map(),
    own: new Map(),
    signedStep: -1,
    memberRounds: new Array<number>(committee.size).fill(-1),
    farVotes: new Set(),
    accused: new Set(),
    last,
    early: new Map(),
    earlyProposals: new Map(),
    writtenPolkas: new Set(),
    writtenProposals: new Set(),
    resume: undefined,
    recovered,
    stopped: false,
    listening: undefined,
    // For a member in normal operation: a vote that it did not make was made elsewhere.
    ownKey: { listens: false, newFrom: UNKNOWN_HEIGHT, ownFrom: 0, barred: -1, arriving: 0, worths: [] },
    answered: new Map(),
    tickStep: '',
    tickHeights: [UNKNOWN_HEIGHT, UNKNOWN_HEIGHT],
    ticksThere: 0,
    wantCut: NIL,
    rules,
  };
}

/** Proposal, prevote and precommit of a round in the order in which they are signed. */
export const stepNumber = (round: number, kind: 0 | 1 | 2): number => round * 3 + kind;

export function roundOf(state: ConsensusState, round: number): Round {
  let found = state.rounds.get(round);
  if (found === undefined) {
    const { size } = state.committee;
    found = {
      round,
      proposal: undefined,
      prevotes: emptyTally(size),
      precommits: emptyTally(size),
      prevoteTimer: false,
      precommitTimer: false,
    };
    state.rounds.set(round, found);
  }
  return found;
}
