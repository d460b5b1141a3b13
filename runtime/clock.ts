/**
 * Clocks that do not follow the system's. Somebody setting that one back, or ahead, ends no session, starves no bucket and prolongs no ban or wait: whatever a
 * program measures goes by a clock that starts at the system's time and then only runs. Only what must agree with the outside reads the system's.
 */

/** Milliseconds since 1970, from the system's time at the start and the monotonic clock since. */
export const steadyNow = (): number => performance.timeOrigin + performance.now();

/** The same in whole milliseconds. */
export const steadyMillis = (): number => Math.floor(steadyNow());

/** The later of both clocks: for a bound that must not refuse what is right because one of them is wrong. */
export const laterMillis = (): number => Math.max(Date.now(), steadyMillis());
