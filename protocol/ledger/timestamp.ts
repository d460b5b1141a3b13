/**
 * The time of a work block (ledger rule 41): after its anchor's, and not far ahead of the later of the checking clock
 * and the anchor. A clock that is behind the chain (it was set back, or a cut was made while it was ahead) must not
 * refuse all work until it has caught up: a block on a finalized cut cannot be dated before it.
 */

/** How far a block's time may be ahead. */
export const MAX_AHEAD_MILLIS = 10_000;

export type TimestampFault = 'too_early' | 'too_late';

export type TimeBounds = {
  readonly anchorMillis: number;
  readonly nowMillis: number;
  /** Differs from rule 41's if a template is checked with a clock other than the node's. */
  readonly aheadMillis?: number;
};

/** Undefined if the time is valid. */
export function timestampFault(timestampMillis: number, bounds: TimeBounds): TimestampFault | undefined {
  const { anchorMillis, nowMillis, aheadMillis = MAX_AHEAD_MILLIS } = bounds;
  if (timestampMillis <= anchorMillis) return 'too_early';
  return timestampMillis > Math.max(nowMillis, anchorMillis) + aheadMillis ? 'too_late' : undefined;
}
