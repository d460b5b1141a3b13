/**
 * The front end of the simulated month: the pool's own journal and outbox, read by whichever instance keeps the books. It
 * dies without a word and comes back under another boot id, with what its earlier boots left on the disk.
 */
import { rmSync } from 'node:fs';
import { NOTHING, type Positions } from '../../pool/feed/entry-source.ts';
import { LocalFeed } from '../../pool/feed/local-feed.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { Journal, type JournalEntry } from '../../pool/journal/journal.ts';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';

/** An instance that was given entries and says nothing for this long no longer has them. */
const LEASE_MILLIS = 1_000;

export class MonthFrontEnd {
  readonly #directory: string;
  readonly #positions: Positions;
  #boots = 0;
  #journal!: Journal;
  #outbox!: Outbox;
  #feed!: LocalFeed;
  #turn: Promise<unknown> = Promise.resolve();
  #reader: { readonly name: string; since: number } | undefined;

  private constructor(directory: string, positions: Positions) {
    this.#directory = directory;
    this.#positions = positions;
  }

  static async open(directory: string, positions: Positions): Promise<MonthFrontEnd> {
    const frontEnd = new MonthFrontEnd(directory, positions);
    await frontEnd.#boot();
    return frontEnd;
  }

  async #boot(): Promise<void> {
    const bootId = pattern(`month/boot/${this.#boots++}`, 8);
    this.#journal = await Journal.open({ directory: this.#directory, bootId, segmentBytes: 1 << 20 });
    const options = { directory: this.#directory, bootId: this.#journal.bootId, memoryEntries: 500 };
    this.#outbox = await Outbox.open(options, { log: quietLog });
    this.#feed = new LocalFeed(this.#outbox, { positions: this.#positions });
    this.#reader = undefined;
  }

  get boot(): number {
    return this.#boots;
  }

  get bootId(): string {
    return this.#journal.bootId;
  }

  /** Nothing waits for the books. */
  get isEmpty(): boolean {
    return this.#outbox.waiting === 0;
  }

  /** On disk when it resolves. With `dies` the process ends right then: the next boot finds the records there. */
  async keep(records: readonly JournalRecord[], dies: boolean): Promise<void> {
    const encoded = records.map(encodeRecord);
    const first = encoded.length === 0 ? 0 : await this.#journal.append(encoded);
    if (dies) {
      await this.#journal.close();
      await this.#boot();
    } else this.#outbox.push(encoded.map((record, i) => ({ bootId: this.bootId, sequence: first + i, record })));
  }

  async begin(name: string): Promise<void> {
    this.#reader = { name, since: Date.now() };
    await this.#feed.begin();
  }

  /** To one reader at a time, from the first entry that is not in the books: no reader ever gets a later one first. */
  take(name: string, maxEntries: number, waitMillis: number): Promise<readonly JournalEntry[]> {
    const turn = this.#turn.then(() => this.#take(name, maxEntries, waitMillis));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #take(name: string, maxEntries: number, waitMillis: number): Promise<readonly JournalEntry[]> {
    const reader = this.#reader;
    if (reader?.name !== name) {
      if (reader !== undefined && Date.now() - reader.since < LEASE_MILLIS) return NOTHING.entries;
      await this.begin(name);
    } else reader.since = Date.now();
    const outbox = this.#outbox;
    const { entries } = await this.#feed.take(maxEntries, waitMillis);
    if (this.#reader?.name === name) return entries;
    // While it waited another one began: these are the other's.
    outbox.rewind();
    return NOTHING.entries;
  }

  async committed(bootId: string, through: number): Promise<void> {
    this.#outbox.taken(bootId, through);
  }

  isCaughtUp(): Promise<boolean> {
    return this.#feed.isCaughtUp();
  }

  mayTell(bootId: string): Promise<boolean> {
    return this.#feed.mayTell(bootId);
  }

  async close(): Promise<void> {
    await this.#journal.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
