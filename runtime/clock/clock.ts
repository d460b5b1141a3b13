/**
 * Clocks that ignore changes of the system clock. Setting it back or ahead must not end sessions, starve token buckets
 * or prolong bans and waits: programs measure times with a clock that starts at the system's time and is monotonic.
 * Only times that must agree with the outside use the system clock.
 */

const { timeOrigin } = performance;

/** Milliseconds since 1970, from the system's time at the start and the monotonic clock since. */
export const steadyNow = (): number => timeOrigin + performance.now();

/** The same in whole milliseconds. */
export const steadyMillis = (): number => Math.floor(steadyNow());

/** The later of both clocks: for a limit that must not refuse valid input because one of them is wrong. */
export const laterMillis = (): number => Math.max(Date.now(), steadyMillis());
