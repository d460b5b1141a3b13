/**
 * What a peer loses by breaking rules (network.md: score). Pure: points come back with time; at the floor the peer is disconnected and barred for a while. A fault that can happen to an honest
 * peer costs little, one that cannot costs everything at once.
 */

export const FAULTS = {
  /** A certificate, a chain of cuts or a header that cannot be. */
  false_proof: 100,
  /** Bytes that are no message. */
  malformed: 50,
  /** A block without its work, or whose header or body is none. */
  bad_block: 50,
  /** It claimed a height and has no cut to show for it. */
  false_height: 25,
  /** A transaction that no state makes valid. */
  bad_transaction: 20,
  /** It asked and did not read the answer in its time. */
  unread: 20,
  /** More questions than a peer has. */
  flood: 10,
  /** No answer in time, or a broken one. */
  unanswered: 10,
  /** It announced something and does not have it, more often than cuts and full mempools explain. */
  undelivered: 10,
} as const;

export type Fault = keyof typeof FAULTS;

export const FLOOR = 100;
/** So many points are forgiven in a minute. */
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
