/** The clock, chance and timers of the system, for whoever does not bring its own. */
export const systemClock = {
  now: (): number => performance.now(),
  random: Math.random,
  every: (millis: number, act: () => void): (() => void) => {
    const timer = setInterval(act, millis);
    return () => clearInterval(timer);
  },
};
