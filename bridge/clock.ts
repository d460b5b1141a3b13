/**
 * The clock of the stratum server: milliseconds since 1970, from the system's time at the start and the monotonic clock
 * since. Somebody setting the system's clock back, or ahead, ends no session, starves no bucket and prolongs no ban.
 */
export const steadyNow = (): number => performance.timeOrigin + performance.now();
