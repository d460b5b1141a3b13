/**
 * Clocks that ignore changes of the system clock. Setting that one back or ahead ends no session, starves no bucket and prolongs no ban or wait: programs
 * measure times with a clock that starts at the system's time and is monotonic. Only times that must agree with the outside use the system clock.
 */

const { timeOrigin } = performance;

/** Milliseconds since 1970, from the system's time at the start and the monotonic clock since. */
export const steadyNow = (): number => timeOrigin + performance.now();

/** The same in whole milliseconds. */
export const steadyMillis = (): number => Math.floor(steadyNow());

/** The later of both clocks: for a bound that must not refuse what is right because one of them is wrong. */
export const laterMillis = (): number => Math.max(Date.now(), steadyMillis());
