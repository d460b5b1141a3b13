/**
 * The orderly end of a program. SIGINT or SIGTERM, or the program itself, asks for it once; the parts are stopped in
 * the reverse order of their start, within a time limit. A later signal, or the limit, ends the process at once:
 * nothing may depend on an orderly end (a kill -9 or a power cut gives none), it only makes the next start quicker.
 */
import type { MonotonicClock } from './clock/clock.ts';
import { leaveDirectories } from './files/directory-lock.ts';
import type { Logger } from './log/log.ts';

export interface ShutdownOptions {
  readonly limitMs: number;
}

export interface ShutdownDependencies {
  readonly log: Logger;
  readonly process: Pick<NodeJS.Process, 'on' | 'off' | 'exit'>;
  readonly now: MonotonicClock;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;
/** One Ctrl-C arrives more than once: from the terminal, from npm and from the launcher, which all pass it on. */
const SAME_REQUEST_MS = 500;
export const DEFAULT_SHUTDOWN_LIMIT_MS = 20_000;

export class Shutdown {
  readonly #options: ShutdownOptions;
  readonly #dependencies: ShutdownDependencies;
  readonly #parts: { name: string; stop: () => Promise<void> | void }[] = [];
  readonly #abort = new AbortController();
  readonly #done = Promise.withResolvers<number>();
  #requestedAt = 0;
  readonly #listeners: [keyof typeof SIGNALS, () => void][];
  /** The process is ended elsewhere (program.ts); but the log must have the error. */
  readonly #defect = (error: Error): void =>
    this.#dependencies.log.error('ended by a defect', { error, stack: error?.stack });

  constructor(options: ShutdownOptions, dependencies: ShutdownDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#listeners = Object.entries(SIGNALS).map(([signal, code]) => [
      signal as keyof typeof SIGNALS,
      () => {
        if (!this.signal.aborted) {
          // A new process that is started now waits for the end of this one.
          leaveDirectories();
          this.request(signal);
        } else if (dependencies.now() - this.#requestedAt >= SAME_REQUEST_MS) dependencies.process.exit(code);
      },
    ]);
    for (const [signal, listener] of this.#listeners) dependencies.process.on(signal, listener);
    dependencies.process.on('uncaughtExceptionMonitor', this.#defect);
  }

  /** Aborted when the end was asked for: loops and waits watch it. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The exit code, once everything has stopped. A program awaits this. */
  get done(): Promise<number> {
    return this.#done.promise;
  }

  /**
   * Starts a program, and gives its exit code. Where the start fails, `failed` says so and gives the code; one that the
   * end cut short is no failure.
   */
  async run(begin: () => Promise<unknown>, failed: (error: unknown) => number): Promise<number> {
    try {
      await begin();
    } catch (error) {
      if (!this.signal.aborted) this.request('failed to start', failed(error));
    }
    return await this.done;
  }

  /** Registers a part that has started. A part that starts after the end was asked for is stopped at once. */
  add(name: string, stop: () => Promise<void> | void): void {
    if (this.signal.aborted) void this.#stopPart(name, stop);
    else this.#parts.push({ name, stop });
  }

  /** Asks for the end; later calls change nothing. */
  request(reason: string, exitCode = 0): void {
    if (this.signal.aborted) return;
    this.#dependencies.log.info('stopping', { reason });
    this.#requestedAt = this.#dependencies.now();
    this.#abort.abort();
    void this.#stopAll(exitCode);
  }

  async #stopAll(exitCode: number): Promise<void> {
    const { log, process } = this.#dependencies;
    const { limitMs } = this.#options;
    let current = '';
    const timer = setTimeout(() => {
      log.error('stopping took too long', { part: current, limitMs });
      process.exit(1);
    }, limitMs);
    let failed = false;
    for (const { name, stop } of this.#parts.reverse()) {
      current = name;
      failed = !(await this.#stopPart(name, stop)) || failed;
    }
    clearTimeout(timer);
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
    process.off('uncaughtExceptionMonitor', this.#defect);
    log.info('stopped');
    this.#done.resolve(failed && exitCode === 0 ? 1 : exitCode);
  }

  async #stopPart(name: string, stop: () => Promise<void> | void): Promise<boolean> {
    try {
      await stop();
      return true;
    } catch (error) {
      this.#dependencies.log.error('a part failed to stop', { part: name, error });
      return false;
    }
  }
}
