/** Resource limits for relays and their records (consensus rule 24). */

export const RECORD = {
  /** Relays in a record, and relays at which a validator without an open port keeps a slot. */
  relays: 2,
  /** How long a record is valid. */
  millis: 600_000,
  /** A record that expires later than this is refused; it allows for clock differences. */
  longestMillis: 1_200_000,
  /** How often a new one is announced; also when the relays change. */
  refreshMillis: 180_000,
  /** Records accepted and forwarded, per validator. */
  ofOne: { perSecond: 0.1, burst: 6 },
  /**
   * Signatures checked for all that proved a key, and surely for each: a new neighbour sends all its records. Each check takes a
   * tenth of a millisecond, and liars may have most of the keys.
   */
  checks: { all: { perSecond: 200, burst: 2_048 }, sure: { perSecond: 2, burst: 64 } },
} as const;

export const SLOT = {
  /** Slots at one relay: as many as a committee has members. Each validator has one. */
  most: 64,
  /** How long a relay that has not answered is skipped. */
  answerMillis: 5_000,
  passedOverMillis: 60_000,
  /** How often a relay is asked whether the slot still exists. */
  renewMillis: 60_000,
} as const;

export const CIRCUIT = {
  /** Circuits through one relay, including those that wait for their ends. */
  most: 256,
  /** Circuits per validator. */
  ofOne: 64,
  /** Circuits between the same two: after a reconnect the old one may not be known to be dead yet. */
  ofTwo: 2,
  /** Circuits requested by one validator that wait for their ends. */
  waitingOfOne: 8,
  /** Circuits requested by one validator: at a start there may be one to each member. */
  asked: { perSecond: 1, burst: 64 },
  /** Circuits from one validator to the same other one: each makes the other connect. */
  toOne: { perSecond: 0.1, burst: 4 },
  /** Time until both ends must be connected. */
  joinMillis: 10_000,
  /** Connections to one relay that a validator opens at once. */
  joins: 8,
  /**
   * Invitations of one relay that a validator follows because of its slot. At a start each member may ask twice;
   * without success each asks once a minute.
   */
  invited: { perSecond: 2, burst: 128 },
  /** Echoes pass every 10 s (rule 22). */
  idleMillis: 60_000,
  /** How long a circuit stays after an end is no longer listed. */
  unlistedMillis: 60_000,
  /** Bandwidth in each direction, and of all circuits of a relay together. */
  bytes: { perSecond: 1024 * 1024, burst: 8 * 1024 * 1024 },
  together: { perSecond: 16 * 1024 * 1024, burst: 64 * 1024 * 1024 },
  /** The shared limit never causes a longer wait. */
  mostMillis: 1_000,
} as const;
