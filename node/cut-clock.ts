/**
 * Paces the cuts of a development node: one every `cutMillis`, measured from the start of the last, never two at once. A cut that
 * takes longer than the pace is followed at once, and time lost that way is not made up by a burst.
 */
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
