/**
 * The only way to change the wallet's state: a step is applied to the book at once and written in order; steps added
 * while the disk is busy share the next write. Every step is atomic. A failed write stops the wallet, because memory
 * and disk would differ. Whether the step is on the disk is then unknown, so callers are asked to repeat: the next
 * start finds the step or does not, and either way the same request is paid once. The book is ahead of the disk until a
 * step is written, so nothing may leave this process because of the book alone: await `written` before sending or
 * answering.
 */
import type { Book } from './book.ts';
import { type Changes, type Meta, unwritable, type WalletStore } from './store.ts';

type Waiting = { readonly changes: Changes; readonly durable: boolean; readonly done: PromiseWithResolvers<void> };

export type JournalDependencies = {
  readonly book: Book;
  readonly store: Pick<WalletStore, 'write' | 'forgetChain'>;
  /** Called once, with the error of the write that failed. */
  readonly fault: (error: Error) => void;
};

export class Journal {
  readonly #with: JournalDependencies;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #broken: Error | undefined;
  /** The write of the newest step. */
  #newest: Promise<void> = Promise.resolve();

  constructor(dependencies: JournalDependencies) {
    this.#with = dependencies;
  }

  /** Resolves when the step is written; with `durable`, when it survives a power cut. */
  commit(changes: Changes, durable: boolean): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    const done = Promise.withResolvers<void>();
    this.#with.book.apply(changes);
    this.#waiting.push({ changes, durable, done });
    this.#newest = done.promise;
    this.#start();
    return done.promise;
  }

  /** Resolves when every step decided so far is written; rejects, from then on, when one could not be. */
  async written(): Promise<void> {
    await this.#newest;
    this.check();
  }

  /** Throws when a step could not be written. */
  check(): void {
    if (this.#broken !== undefined) throw this.#broken;
  }

  async forgetChain(meta: Meta): Promise<void> {
    await this.settled();
    const reading = await this.#with.store.forgetChain(meta);
    this.#with.book.forgetOutputs();
    this.#with.book.apply({ meta: reading });
  }

  /** Everything decided so far is written. */
  async settled(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #start(): void {
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
      if (this.#waiting.length > 0) this.#start();
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        if (this.#broken !== undefined) throw this.#broken;
        await this.#with.store.write(
          batch.map(({ changes }) => changes),
          batch.some(({ durable }) => durable),
        );
        for (const { done } of batch) done.resolve();
      } catch (error) {
        const first = this.#broken === undefined;
        this.#broken ??= unwritable(error);
        for (const { done } of batch) done.reject(this.#broken);
        if (first) this.#with.fault(this.#broken);
      }
    }
  }
}
