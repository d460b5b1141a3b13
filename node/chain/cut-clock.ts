/**
 * Paces the cuts of a development node: one every `cutMillis`, measured from the start of the last, never two at once. After a cut that
 * took longer than the pace the next one starts at once; lost time is not made up by a burst.
 */

/**
 * The time of the next cut. If the clock is behind the last cut, because it was set back or had been ahead, cuts are
 * half a pace apart until it has caught up: their times keep increasing, and values measured by them (hash rates, the
 * pace itself) are off by a factor of two at most.
 */
export const nextCutMillis = (nowMillis: number, lastMillis: number, cutMillis: number): number =>
  nowMillis > lastMillis ? nowMillis : lastMillis + Math.max(1, Math.floor(cutMillis / 2));

export class CutClock {
  readonly #cutMillis: number;
  readonly #seal: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(cutMillis: number, seal: () => Promise<void>) {
    this.#cutMillis = cutMillis;
    this.#seal = seal;
  }

  start(): void {
    this.#wait(this.#cutMillis);
  }

  #wait(millis: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      const began = performance.now();
      // A failed cut stops the node, and with it this clock.
      this.#seal().then(
        () => this.#wait(Math.max(0, this.#cutMillis - (performance.now() - began))),
        () => undefined,
      );
    }, millis);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}

export const CUT_STEPS = ['choose', 'apply', 'certify', 'commit', 'settle'] as const;
export type CutStep = (typeof CUT_STEPS)[number];

/** Reports how long each step of a cut took. */
export function stepTimer(tell: ((step: CutStep, seconds: number) => void) | undefined): (step: CutStep) => void {
  let began = performance.now();
  return (step) => {
    const ended = performance.now();
    tell?.(step, (ended - began) / 1000);
    began = ended;
  };
}
