/** Timers that are all cancelled at the end. */
export class Timers {
  readonly #waiting = new Set<NodeJS.Timeout>();

  later(millis: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#waiting.delete(timer);
      run();
    }, millis);
    this.#waiting.add(timer);
  }

  close(): void {
    for (const timer of this.#waiting) clearTimeout(timer);
  }
}
