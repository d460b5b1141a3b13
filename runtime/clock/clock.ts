/**
 * Clocks that ignore changes of the system clock. Setting it back or ahead must not end sessions, starve token buckets
 * or prolong bans and waits: programs measure times with a clock that starts at the system's time and is monotonic.
 * Only times that must agree with the outside use the system clock.
 */

/** Milliseconds that name their clock. A plain number passes for any of them, and so does what is computed (docs/decisions/0017-clocks-by-type.md). */
type Millis<Clock extends string> = number & { readonly clock?: Clock };

/** The system's time since 1970. It jumps when somebody sets it, and it goes on while the machine sleeps. */
export type WallMillis = Millis<'wall'>;
/** The system's time without its short jumps, for the times of a chain (watched-clock.ts). */
export type LedgerMillis = Millis<'ledger'>;
/** Time since 1970 that never jumps: may be kept and shown, and be compared with another process within a clock's error. */
export type SteadyMillis = Millis<'steady'>;
/** Time that never jumps, since no certain moment: only differences within one process mean something. */
export type MonotonicMillis = Millis<'steady' | 'monotonic'>;
/** The later of the wall clock and the steady one. */
export type LaterMillis = Millis<'later'>;

export type WallClock = () => WallMillis;
export type LedgerClock = () => LedgerMillis;
export type SteadyClock = () => SteadyMillis;
export type MonotonicClock = () => MonotonicMillis;
export type LaterClock = () => LaterMillis;

const { timeOrigin } = performance;

export const wallMillis: WallClock = () => Date.now();

export const monotonicMillis: MonotonicClock = () => performance.now();

/** From the system's time at the start and the monotonic clock since. */
export const steadyNow: SteadyClock = () => timeOrigin + performance.now();

/** The same in whole milliseconds. */
export const steadyMillis: SteadyClock = () => Math.floor(steadyNow());

/** For a limit that must not refuse valid input because one of both clocks is wrong. */
export const laterMillis: LaterClock = () => Math.max(Date.now(), steadyMillis());
