/**
 * A validator that was offline longer than its neighbours keep cuts fetches them from peers before it takes part again.
 * It waits as long as cuts arrive; unproven claims of peers delay it by at most half a minute.
 */

/** Up to this many cuts, a validator catches up through its neighbours; they keep 1,440. */
const NEAR_CUTS = 96;
/** Time for configured or remembered peers to connect. */
const MEET_MILLIS = 3_000;
/** Time limit if a peer claims more cuts but none arrive. */
const STALL_MILLIS = 30_000;
const LOOK_MILLIS = 250;

export type CatchingUpDependencies = {
  height(): number;
  /** Headers read back from checkpoints: nothing is executed before they are complete. */
  headers(): number;
  /** Whether a peer says that it has this cut. */
  isClaimed(height: number): boolean;
  /** Whether there are any peers to wait for. */
  readonly expectsPeers: boolean;
  steady(): number;
};

/**
 * Resolves when the neighbours can do the rest: 'near', or 'stalled' if peers did not deliver what they claim. Rejects
 * when the signal is aborted.
 */
export async function caughtUp(
  { height, headers, isClaimed, expectsPeers, steady }: CatchingUpDependencies,
  signal: AbortSignal,
): Promise<'near' | 'stalled'> {
  const start = steady();
  let [last, movedAt] = [height() + headers(), start];
  for (;;) {
    signal.throwIfAborted();
    const now = steady();
    const head = height();
    const done = head + headers();
    if (done > last) [last, movedAt] = [done, now];
    const hasMet = !expectsPeers || now - start >= MEET_MILLIS;
    if (!isClaimed(head + NEAR_CUTS) && hasMet) return 'near';
    if (now - movedAt >= STALL_MILLIS) return 'stalled';
    await new Promise((resolve) => setTimeout(resolve, LOOK_MILLIS));
  }
}
