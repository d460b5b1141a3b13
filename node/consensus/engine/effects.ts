/**
 * The inputs and outputs of the engine. The driver carries out effects one after the other, and each is complete before
 * the next begins: effects after a `write` happen only when the bytes are on disk.
 */
import type { Bytes } from '../../../protocol/bytes.ts';
import type { Committee } from './committee.ts';
import type { CutName, Proof, Vote, VoteKind } from './votes.ts';

/** The driver's name for a neighbour. */
export type Peer = number | string;

export type Proposal = {
  readonly height: number;
  readonly round: number;
  /** The round of the polka for this cut, -1 for a fresh one. */
  readonly validRound: number;
  readonly cut: CutName;
  /** From the cut's header: who signed the previous cut, and in which round. */
  readonly signers: bigint;
  readonly lastRound: number;
  /** Cut header and block identifiers; the engine does not look inside. */
  readonly content: Bytes;
  /** Signature of the round's proposer; empty if a certificate proves the cut. */
  readonly signature: Bytes;
};

/** Status of a member: what it has and lacks. It is sent to neighbours and not signed. */
export type Have = {
  readonly height: number;
  readonly round: number;
  readonly prevotes: bigint;
  readonly precommits: bigint;
  readonly hasProposal: boolean;
  readonly validRound: number;
  /** A round whose polka is needed for the proposal; -1 for none. */
  readonly wantPolka: number;
  /** A cut that has its votes but is missing here; empty for none. */
  readonly wantCut: CutName;
  /** Which precommits for the previous cut, of this round, are here. */
  readonly lastRound: number;
  readonly lastPrecommits: bigint;
};

/** A final cut for a member that is behind. */
export type Finalized = { readonly proof: Proof; readonly proposal: Proposal };

export type Message =
  | { readonly type: 'proposal'; readonly proposal: Proposal }
  | { readonly type: 'vote'; readonly vote: Vote }
  | { readonly type: 'proof'; readonly proof: Proof }
  | { readonly type: 'have'; readonly have: Have }
  | { readonly type: 'finalized'; readonly finalized: Finalized };

/** A message before its signature. */
export type Unsigned =
  | { readonly type: 'proposal'; readonly proposal: Proposal }
  | { readonly type: 'vote'; readonly vote: Vote };

export type TimerKind = 'propose' | 'prevote' | 'precommit';

/** The lock and the valid value, and their proofs. */
type Locks = {
  readonly lockedRound: number;
  readonly locked: CutName;
  readonly validRound: number;
  readonly valid: CutName;
  readonly polkas: readonly Proof[];
  readonly proposals: readonly Proposal[];
};

/** One batch of the write-ahead log: a signed message, and what it rests on; proofs unless written before. */
export type LogRecord = Locks & { readonly height: number; readonly message: Unsigned };

/** Contents of the log for its last height: what was signed, in the order of signing. */
export type Recovered = Locks & { readonly height: number; readonly messages: readonly Unsigned[] };

export type Event =
  /** The height before was committed, and the next begins to collect votes. `last`: that cut, if it was decided elsewhere. */
  | {
      readonly type: 'height';
      readonly height: number;
      readonly committee: Committee;
      readonly self: number;
      readonly last?: { readonly proof: Proof; readonly committee: Committee } | undefined;
    }
  /** The time of the height's first round has come (rule 4). */
  | { readonly type: 'begin' }
  | { readonly type: 'vote'; readonly vote: Vote }
  /** `timely`: its timestamp is at most a second ahead of this node's clock. May come again once it is. */
  | { readonly type: 'proposal'; readonly proposal: Proposal; readonly timely: boolean }
  | { readonly type: 'proof'; readonly proof: Proof }
  | { readonly type: 'finalized'; readonly finalized: Finalized }
  /** `account`: with what its answers are counted; by itself if not given. */
  | { readonly type: 'have'; readonly have: Have; readonly from: Peer; readonly account?: string }
  | { readonly type: 'built'; readonly proposal: Proposal }
  | { readonly type: 'checked'; readonly height: number; readonly cut: CutName; readonly valid: boolean }
  | { readonly type: 'signed'; readonly message: Unsigned; readonly signature: Bytes }
  | { readonly type: 'timeout'; readonly kind: TimerKind; readonly height: number; readonly round: number }
  /** The rebroadcast timer. Without `company`, all members count as connected. */
  | { readonly type: 'tick'; readonly company?: Company }
  /** The own key signs in another process (rule 23). */
  | { readonly type: 'elsewhere' }
  /** The process did not run for a while (presence.ts). */
  | { readonly type: 'away' };

/**
 * Members of the committee that proved their key, and the number of other neighbours named by the operator, whose stake
 * is unknown.
 */
export type Neighbours = { readonly members: readonly number[]; readonly named: number };

/**
 * Neighbours from which a member can hear about its own key; strangers are not included. The basic group reported its
 * height and, to a listening member, that it knows no other process of its key (rule 23). `ahead`: those that report to
 * be more than one height ahead. `taken`: those that report another connected process of its key. `silent`: those that
 * did not answer.
 */
export type Company = Neighbours & {
  readonly ahead?: Neighbours;
  readonly taken?: Neighbours;
  readonly silent?: Neighbours;
};

/** `some`: a few neighbours, different ones each time. */
export type Receiver = 'all' | 'some' | { readonly peer: Peer } | { readonly member: number };

export type StopReason = 'key_runs_twice';

export type Effect =
  | { readonly do: 'build'; readonly height: number; readonly round: number; readonly last: Proof | undefined }
  /** Fetch the blocks of a proposal, execute it, and report whether it is valid. */
  | { readonly do: 'check'; readonly proposal: Proposal }
  | { readonly do: 'sign'; readonly message: Unsigned }
  | { readonly do: 'write'; readonly record: LogRecord }
  | { readonly do: 'send'; readonly to: Receiver; readonly message: Message }
  | { readonly do: 'timer'; readonly kind: TimerKind; readonly height: number; readonly round: number }
  | { readonly do: 'decide'; readonly proof: Proof; readonly proposal: Proposal }
  | { readonly do: 'evidence'; readonly first: Vote; readonly second: Vote }
  /** Send a neighbour the final cut of this height from the store. */
  | { readonly do: 'serve'; readonly to: Peer; readonly height: number }
  | { readonly do: 'stop'; readonly reason: StopReason; readonly vote: Pick<Vote, 'height' | 'round'> }
  /** Nothing is signed at this height: its key has voted there, but its log does not contain the vote. */
  | { readonly do: 'bar'; readonly vote: Vote }
  /**
   * More than two thirds voted for a cut that this node finds invalid. If it still is with blocks that come anew, either
   * side is broken, and this node must stop.
   */
  | { readonly do: 'fault'; readonly cut: CutName; readonly kind: VoteKind; readonly round: number };
