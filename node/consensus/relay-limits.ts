/** What relays and their records may cost a node of the overlay (consensus rule 24). */

export const RECORD = {
  /** That one names, and that a validator without an open port keeps a slot at. */
  relays: 2,
  /** How long one is good. */
  millis: 600_000,
  /** One that lasts longer from now on is not taken; clocks may differ by the rest. */
  longestMillis: 1_200_000,
  /** A new one is announced so often, and when the relays change. */
  refreshMillis: 180_000,
  /** That are taken and passed on, of one validator. */
  ofOne: { perSecond: 0.1, burst: 6 },
  /** Signatures that are checked, of one neighbour: one that joins sends all that it has. One costs a tenth of a millisecond. */
  checks: { perSecond: 20, burst: 256 },
} as const;

export const SLOT = {
  /** At one relay: as many as a committee has members. Each validator has one. */
  most: 64,
  /** A relay that has not answered is passed over. */
  answerMillis: 5_000,
  passedOverMillis: 60_000,
  /** How often a relay is asked whether there still is one. */
  renewMillis: 60_000,
} as const;

export const CIRCUIT = {
  /** Through one relay, with those that wait for their ends. */
  most: 256,
  /** That one validator is an end of. */
  ofOne: 64,
  /** Between the same two: one that comes back is there before the old one is known to be dead. */
  ofTwo: 2,
  /** That wait for their ends, of those that one validator asked for. */
  waitingOfOne: 8,
  /** Asked for by one validator: at a start there may be one to each member. */
  asked: { perSecond: 1, burst: 64 },
  /** That one validator gets to the same other one: each makes the other connect. */
  toOne: { perSecond: 0.1, burst: 4 },
  /** Until both ends are there. */
  joinMillis: 10_000,
  /** Connections to one relay that a validator opens at once. */
  joins: 8,
  /** Invitations of one relay that a validator follows because of its slot. At a start each member may ask twice; where nothing comes of it each asks once a minute. */
  invited: { perSecond: 2, burst: 128 },
  /** Echoes pass every 10 s (rule 22). */
  idleMillis: 60_000,
  /** How long a circuit stays of which an end is not listed any more. */
  unlistedMillis: 60_000,
  /** In each direction, and of all circuits of a relay together. */
  bytes: { perSecond: 1024 * 1024, burst: 8 * 1024 * 1024 },
  together: { perSecond: 16 * 1024 * 1024, burst: 64 * 1024 * 1024 },
  /** What all sent makes nobody wait longer. */
  mostMillis: 1_000,
} as const;
