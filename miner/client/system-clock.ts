/** The clock, chance and timers of the system, for callers that bring none of their own. */
export const systemClock = {
  now: (): number => performance.now(),
  random: Math.random,
  every: (millis: number, act: () => void): (() => void) => {
    const timer = setInterval(act, millis);
    return () => clearInterval(timer);
  },
};
