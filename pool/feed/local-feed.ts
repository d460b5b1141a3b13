/** The feed of a single instance: the accountant reads the outbox of its own process. */
import { type EntrySource, NOTHING, type Positions, type TakenEntries } from './entry-source.ts';
import type { Outbox } from './outbox.ts';

export class LocalFeed implements EntrySource {
  readonly #outbox: Outbox;
  readonly #positions: Positions;
  /** The newest sequence of each boot when the feed began. */
  #goals: ReadonlyMap<string, number> = new Map();

  constructor(outbox: Outbox, dependencies: { positions: Positions }) {
    this.#outbox = outbox;
    this.#positions = dependencies.positions;
  }

  async begin(): Promise<void> {
    const goals = new Map(this.#outbox.lines().map(({ bootId, last }) => [bootId, last]));
    for (const [bootId, through] of await this.#positions([...goals.keys()])) this.#outbox.standAt(bootId, through);
    this.#outbox.rewind();
    this.#goals = goals;
  }

  async take(maxEntries: number, waitMillis: number): Promise<TakenEntries> {
    let batch = await this.#outbox.next(maxEntries);
    if (batch === undefined) {
      await this.#outbox.wait(waitMillis);
      batch = await this.#outbox.next(maxEntries);
    }
    if (batch === undefined) return NOTHING;
    const { bootId, slice } = batch;
    const entries = slice === undefined ? batch.entries : batch.entries.map((entry) => ({ ...entry, slice }));
    const through = entries.at(-1)?.sequence ?? -1;
    return { entries, committed: async () => this.#outbox.taken(bootId, through) };
  }

  async isCaughtUp(): Promise<boolean> {
    return this.#outbox.lines().every(({ bootId, taken }) => taken >= (this.#goals.get(bootId) ?? -1));
  }

  async mayTell(bootId: string): Promise<boolean> {
    const line = this.#outbox.lines().find((each) => each.bootId === bootId);
    return line !== undefined && line.taken < line.last;
  }

  async close(): Promise<void> {}
}
