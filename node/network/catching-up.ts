/**
 * A validator that was away longer than its neighbours keep cuts for takes them from peers before it takes part again. It waits for as long as cuts come; what peers only claim holds it up for half a minute and no longer.
 */

/** So far a validator catches up with its neighbours itself; they keep 1,440. */
const NEAR_CUTS = 96;
/** Until peers that were named or remembered have said hello. */
const MEET_MILLIS = 3_000;
/** Somebody claims more, and nothing comes. */
const STALL_MILLIS = 30_000;
const LOOK_MILLIS = 250;

export type CatchingUpDependencies = {
  height(): number;
  /** Headers that were read back from checkpoints: until they are there nothing is executed. */
  headers(): number;
  /** Whether a peer says that it has this cut. */
  isClaimed(height: number): boolean;
  /** Whether there is anybody to wait for. */
  readonly expectsPeers: boolean;
  steady(): number;
};

/** Resolves when the neighbours can do the rest: 'near', or 'stalled' where nothing came of what peers claim. Rejects when the signal says so. */
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
