/** The feed of a single instance: the accountant reads the outbox of its own process. */
import { type EntrySource, NOTHING, type TakenEntries } from './entry-source.ts';
import type { Outbox, OutgoingBatch } from './outbox.ts';

export class LocalFeed implements EntrySource {
  readonly #outbox: Outbox;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  async begin(): Promise<void> {
    this.#outbox.rewind();
  }

  async take(maxEntries: number, waitMillis: number): Promise<TakenEntries> {
    let batch = await this.#outbox.next(maxEntries);
    if (batch === undefined) {
      await this.#outbox.wait(waitMillis);
      batch = await this.#outbox.next(maxEntries);
    }
    if (batch === undefined) return NOTHING;
    const { bootId, entries } = batch as OutgoingBatch;
    return { entries, committed: () => this.#outbox.taken(bootId, entries.at(-1)?.sequence ?? -1) };
  }

  async close(): Promise<void> {}
}
