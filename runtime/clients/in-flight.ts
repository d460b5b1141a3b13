/** So many times as long as it took to make, a result is given to those that ask after it too. */
import { type MonotonicClock, monotonicMillis } from '../clock/clock.ts';

const KEPT = 4;

/**
 * Concurrent requests for the same thing share one result: something that clients can request by the thousand is made once at a time, and
 * takes a fifth of the time at most, however often it is asked for.
 */
export function sharedInFlight<T>(make: () => Promise<T>, now: MonotonicClock = monotonicMillis): () => Promise<T> {
  let made: Promise<T> | undefined;
  let untilMillis = Number.POSITIVE_INFINITY;
  return () => {
    if (made !== undefined && now() < untilMillis) return made;
    untilMillis = Number.POSITIVE_INFINITY;
    const began = now();
    made = make().then(
      (result) => {
        untilMillis = now() + KEPT * (now() - began);
        return result;
      },
      (error: unknown) => {
        untilMillis = Number.NEGATIVE_INFINITY;
        throw error;
      },
    );
    return made;
  };
}
