/**
 * The score of a peer (network.md: score). Pure: points are regained with time; at the floor the peer is disconnected
 * and barred for a while. A fault that an honest peer can have costs little, any other costs everything at once.
 */

export const FAULTS = {
  /** An invalid certificate, chain of cuts or header. */
  false_proof: 100,
  /** Frames without end: no honest peer sends a fraction of them. */
  frames: 100,
  /** Malformed bytes. */
  malformed: 50,
  /** A block without valid work, header or body. */
  bad_block: 50,
  /** It claimed a height but has no cut to prove it. */
  false_height: 25,
  /** A transaction that is invalid in every state. */
  bad_transaction: 20,
  /** Too many requests. */
  flood: 10,
  /** Nothing of an answer in time, or a broken one. */
  unanswered: 10,
  /** It announced something, was asked at once and does not have it, more often than conflicts and full mempools explain. */
  undelivered: 10,
} as const;

export type Fault = keyof typeof FAULTS;

export const FLOOR = 100;
/** Points regained per minute. */
const FORGIVEN_PER_MINUTE = 5;
export const BARRED_MILLIS = 10 * 60_000;

export type Score = { readonly lost: number; readonly atMillis: number };

export const NO_FAULT: Score = { lost: 0, atMillis: 0 };

export const lostAt = ({ lost, atMillis }: Score, nowMillis: number): number =>
  Math.max(0, lost - (Math.max(0, nowMillis - atMillis) * FORGIVEN_PER_MINUTE) / 60_000);

export const afterFault = (score: Score, fault: Fault, nowMillis: number): Score => ({
  lost: Math.min(FLOOR, lostAt(score, nowMillis) + FAULTS[fault]),
  atMillis: nowMillis,
});

export const isBeyondBearing = ({ lost }: Score): boolean => lost >= FLOOR;
