/**
 * What the journals of this machine hold and the books have not taken yet: the journal being written, and those of earlier
 * boots that ended before everything was taken. Recent entries are kept in memory, bounded; older ones are read back from
 * the files. Entries of a boot always leave in order, each batch with the sequence that stands before it.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../runtime/log.ts';
import { dropJournal, type JournalEntry, journalBoots, readJournal } from '../journal.ts';

export type OutgoingBatch = {
  readonly bootId: string;
  /** Sequence of the entry before the first of this batch; -1 at the start of a journal. */
  readonly after: number;
  readonly entries: readonly JournalEntry[];
};

export type OutboxOptions = {
  readonly directory: string;
  readonly bootId: string;
  /** Entries kept in memory; beyond them the files are read. */
  readonly memoryEntries?: number;
  /** Taken entries between two looks for segments that can go. */
  readonly dropEvery?: number;
};

export const OUTBOX_DEFAULTS = { memoryEntries: 50_000, dropEvery: 50_000 } as const;

/** One journal on its way. */
type Line = {
  readonly bootId: string;
  readonly ended: boolean;
  last: number;
  sent: number;
  taken: number;
  dropped: number;
  /** Newest entries, joined without a gap; `recentAfter` is the sequence before the first. */
  recent: JournalEntry[];
  recentAfter: number;
  /** A segment read back from disk; `at` is the index of the entry after the one sent last. */
  backlog: { entries: readonly JournalEntry[]; at: number; after: number } | undefined;
};

const newLine = (bootId: string, ended: boolean, last: number): Line => ({
  bootId,
  ended,
  last,
  sent: -1,
  taken: -1,
  dropped: -1,
  recent: [],
  recentAfter: ended ? Number.MAX_SAFE_INTEGER : -1,
  backlog: undefined,
});

export class Outbox {
  readonly #directory: string;
  readonly #memoryEntries: number;
  readonly #dropEvery: number;
  readonly #own: Line;
  readonly #lines = new Map<string, Line>();
  readonly #log: Logger;
  #wake: (() => void)[] = [];

  private constructor(options: OutboxOptions, log: Logger) {
    this.#directory = options.directory;
    this.#memoryEntries = options.memoryEntries ?? OUTBOX_DEFAULTS.memoryEntries;
    this.#dropEvery = options.dropEvery ?? OUTBOX_DEFAULTS.dropEvery;
    this.#own = newLine(options.bootId, false, -1);
    this.#log = log;
  }

  /** Finds what earlier boots left behind. Their entries go out first. */
  static async open(options: OutboxOptions, dependencies: { log: Logger }): Promise<Outbox> {
    const outbox = new Outbox(options, dependencies.log);
    for (const bootId of await journalBoots(options.directory)) {
      if (bootId === options.bootId) continue;
      let last = -1;
      for await (const entries of readJournal(options.directory, bootId, -1))
        last = (entries.at(-1) as JournalEntry).sequence;
      if (last === -1) await rm(join(options.directory, bootId), { recursive: true });
      else outbox.#lines.set(bootId, newLine(bootId, true, last));
    }
    if (outbox.#lines.size > 0) dependencies.log.info('earlier journals found', { boots: outbox.#lines.size });
    outbox.#lines.set(options.bootId, outbox.#own);
    return outbox;
  }

  /** Entries of this process's own journal, in the order of their sequences, once they are on disk. */
  push(entries: readonly JournalEntry[]): void {
    const own = this.#own;
    for (const entry of entries) {
      own.recent.push(entry);
      own.last = entry.sequence;
    }
    if (own.recent.length > 2 * this.#memoryEntries) this.#forget(own, own.recent.length - this.#memoryEntries);
    this.#wakeAll();
  }

  /** Entries that the books have not taken yet, counted by sequence. */
  get waiting(): number {
    let sum = 0;
    for (const line of this.#lines.values()) sum += line.last - line.taken;
    return sum;
  }

  has(bootId: string): boolean {
    return this.#lines.has(bootId);
  }

  /** Boots with entries sent and not taken. */
  underWay(): { bootId: string; taken: number; sent: number }[] {
    return [...this.#lines.values()]
      .filter((line) => line.sent > line.taken)
      .map(({ bootId, taken, sent }) => ({ bootId, taken, sent }));
  }

  /** The next entries to send, at most `max` of one boot and no further than `maxAhead` beyond what was taken. */
  async next(max: number, maxAhead = Number.MAX_SAFE_INTEGER): Promise<OutgoingBatch | undefined> {
    for (const line of this.#lines.values()) {
      if (line.sent >= line.last || line.sent - line.taken >= maxAhead) continue;
      const after = line.sent;
      const entries = await this.#entriesAfter(line, max);
      // Files were read: meanwhile the line may have been rewound, and these entries no longer join it.
      if (entries.length === 0 || line.sent !== after) continue;
      line.sent = (entries.at(-1) as JournalEntry).sequence;
      return { bootId: line.bootId, after, entries };
    }
    return undefined;
  }

  async #entriesAfter(line: Line, max: number): Promise<readonly JournalEntry[]> {
    if (line.sent >= line.recentAfter) {
      line.backlog = undefined;
      return slice(line.recent, firstAfter(line.recent, line.sent), max);
    }
    const after = line.sent;
    if (line.backlog === undefined || line.backlog.at >= line.backlog.entries.length || line.backlog.after !== after) {
      line.backlog = undefined;
      for await (const entries of readJournal(this.#directory, line.bootId, after)) {
        line.backlog = { entries: entries.filter((entry) => entry.sequence <= line.last), at: 0, after };
        break;
      }
    }
    const backlog = line.backlog;
    if (backlog === undefined) return [];
    const found = slice(backlog.entries, backlog.at, max);
    backlog.at += found.length;
    backlog.after = found.at(-1)?.sequence ?? backlog.after;
    return found;
  }

  /** Resolves when there is something new, or after `millis`. */
  wait(millis: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, millis);
      this.#wake.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** The books hold everything of the boot up to `through`. */
  async taken(bootId: string, through: number): Promise<void> {
    const line = this.#lines.get(bootId);
    if (line === undefined || through <= line.taken) return;
    line.taken = through;
    if (line.sent < through) {
      line.sent = through;
      line.backlog = undefined;
    }
    if (!line.ended) this.#forget(line, firstAfter(line.recent, through));
    const over = line.ended && through >= line.last;
    if (!over && through - line.dropped < this.#dropEvery) return;
    line.dropped = through;
    if (over) this.#lines.delete(bootId);
    await dropJournal(this.#directory, bootId, through, over).catch((error: Error) =>
      this.#log.warn('journal segments could not be removed', { bootId, reason: error.message }),
    );
  }

  /** Whatever was sent and not taken goes out again. */
  rewind(bootId?: string): void {
    for (const line of this.#lines.values())
      if (bootId === undefined || line.bootId === bootId) {
        line.sent = line.taken;
        line.backlog = undefined;
      }
    this.#wakeAll();
  }

  #forget(line: Line, count: number): void {
    if (count === 0) return;
    line.recentAfter = (line.recent[count - 1] as JournalEntry).sequence;
    line.recent = line.recent.slice(count);
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}

const slice = (entries: readonly JournalEntry[], from: number, max: number) => entries.slice(from, from + max);

/** Index of the first entry after a sequence. */
function firstAfter(entries: readonly JournalEntry[], sequence: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle] as JournalEntry).sequence <= sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}
