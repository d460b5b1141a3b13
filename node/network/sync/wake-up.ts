/**
 * The wait of a loop between two rounds: until something changes, or a time is over. A change before the wait ends it
 * at once.
 */
export class WakeUp {
  #woken = Promise.withResolvers<void>();

  wake(): void {
    this.#woken.resolve();
  }

  async wait(millis: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, millis);
    });
    await Promise.race([this.#woken.promise, late]);
    clearTimeout(timer);
    this.#woken = Promise.withResolvers();
  }
}
