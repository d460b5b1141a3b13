/** The part of a bucket that was counted: a rate is work per elapsed second, not per second of the whole bucket. */

/** Delay until shares reach their bucket: journal, intake and the next fold. */
const LAG_SECONDS = 8;
/** A bucket that is being filled has its own point once this much of it, and this part of it, has passed. */
const LEAST_SECONDS = 30;
const LEAST_PART = 0.1;

type BucketPlace = { readonly tier: number; readonly bucket: number };

/**
 * Seconds that a bucket's work was done in, by `now`, for a miner or pool whose first share came at `since`. Undefined
 * while it is too early for a rate: the previous point is more accurate.
 */
export function countedSeconds(
  { tier, bucket }: BucketPlace,
  since: number | undefined,
  now: number,
): number | undefined {
  const [start, end] = [bucket * tier, (bucket + 1) * tier];
  const isFirst = since !== undefined && since > start && since < end;
  const from = isFirst ? since : start;
  const seconds = Math.min(end, now - LAG_SECONDS) - from;
  // The first bucket of all has no point before it.
  if (isFirst) return Math.min(end - start, Math.max(LEAST_SECONDS, seconds));
  return seconds >= Math.min(tier, Math.max(LEAST_SECONDS, tier * LEAST_PART)) ? seconds : undefined;
}
