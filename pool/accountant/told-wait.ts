/** A task of the books that fails and is tried again: its log says once that it waits and why, again each minute, and when it goes on. */
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';

const AGAIN_MILLIS = 60_000;

export class ToldWait {
  readonly #what: string;
  readonly #dependencies: { readonly log: Logger; readonly now: MonotonicClock };
  #told: { readonly reason: string; readonly atMillis: number } | undefined;
  #isWaiting = false;

  constructor(what: string, dependencies: { readonly log: Logger; readonly now: MonotonicClock }) {
    this.#what = what;
    this.#dependencies = dependencies;
  }

  failed(error: unknown): void {
    const { log, now } = this.#dependencies;
    const [reason, atMillis] = [String(error), now()];
    if (reason === this.#told?.reason && atMillis - this.#told.atMillis < AGAIN_MILLIS) return;
    log.warn('the books wait', { what: this.#what, error });
    this.#told = { reason, atMillis };
    this.#isWaiting = true;
  }

  /** The task did what it is for. What fails and works by turns is told once a minute. */
  works(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#dependencies.log.info('the books go on', { what: this.#what });
  }
}
