/**
 * Journal entries of this machine that the books have not taken yet: of the journal being written, and of earlier
 * boots. The books' position comes only from the database (`standAt`), and may go back: a restored database gets the
 * lost entries again. Recent entries are kept in memory, bounded; older ones are read back from the files. Entries of a
 * boot always leave in order, each batch with the sequence before its first entry.
 */
import { basename } from 'node:path';
import type { Logger } from '../../runtime/log/log.ts';
import {
  dropJournal,
  type JournalEntry,
  journalBoots,
  lastOfJournal,
  type NoteDamage,
  readJournal,
} from '../journal/journal.ts';
import { SliceMarks } from './slice-marks.ts';

export type OutgoingBatch = {
  readonly bootId: string;
  /** Sequence of the entry before the first of this batch; -1 at the start of a journal. */
  readonly after: number;
  /** The slice of all entries (slice-marks.ts); undefined if not known. */
  readonly slice: number | undefined;
  readonly entries: readonly JournalEntry[];
};

export type OutboxOptions = {
  readonly directory: string;
  readonly bootId: string;
  /** Entries kept in memory; beyond them the files are read. */
  readonly memoryEntries?: number;
};

export const OUTBOX_DEFAULTS = { memoryEntries: 50_000 } as const;

/** One journal being sent, for inspection. */
export type OutboxLine = {
  readonly bootId: string;
  /** The boot has ended: no entries are added. */
  readonly ended: boolean;
  readonly last: number;
  readonly sent: number;
  /** The books' position in this journal. */
  readonly taken: number;
};

type Line = { -readonly [K in keyof OutboxLine]: OutboxLine[K] } & {
  /**
   * False until the books' position was read from the database, so that a day of old journals is not sent needlessly.
   */
  isKnown: boolean;
  /** Newest entries, without a gap; `recentAfter` is the sequence before the first. */
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
  isKnown: !ended,
  recent: [],
  recentAfter: ended ? Number.MAX_SAFE_INTEGER : -1,
  backlog: undefined,
});

const DAMAGE_REMEDY =
  'check the disk; svc_pool_journal_lost_entries says how many entries are missing; see EntriesLost and JournalDamaged in docs/operations.md';

/** A segment keeps its place when it is marked as taken. */
const placeOf = (bootId: string, file: string): string => `${bootId}/${file.split('.')[0]}`;

export class Outbox {
  readonly #directory: string;
  readonly #memoryEntries: number;
  readonly #own: Line;
  readonly #lines = new Map<string, Line>();
  /** Which slices the entries were in. */
  readonly marks: SliceMarks;
  readonly #log: Logger;
  readonly #waiting = new Set<() => void>();
  /** Files with bytes that were not understood, as `boot id/first sequence`, that are still in their place. */
  readonly damaged = new Set<string>();

  private constructor(options: OutboxOptions, log: Logger) {
    this.#directory = options.directory;
    this.#memoryEntries = options.memoryEntries ?? OUTBOX_DEFAULTS.memoryEntries;
    this.#own = newLine(options.bootId, false, -1);
    this.marks = new SliceMarks(options.directory);
    this.#log = log;
  }

  /** Finds the journals of earlier boots. Their entries are sent first. */
  static async open(options: OutboxOptions, dependencies: { log: Logger }): Promise<Outbox> {
    const outbox = new Outbox(options, dependencies.log);
    for (const bootId of await journalBoots(options.directory)) {
      if (bootId === options.bootId) continue;
      const last = await lastOfJournal(options.directory, bootId, outbox.#noteDamage);
      if (last !== -1) outbox.#lines.set(bootId, newLine(bootId, true, last));
      else for (const path of await dropJournal(options.directory, bootId)) outbox.noteAside(bootId, path);
    }
    if (outbox.#lines.size > 0) dependencies.log.info('earlier journals found', { boots: outbox.#lines.size });
    outbox.#lines.set(options.bootId, outbox.#own);
    for (const bootId of outbox.#lines.keys()) await outbox.marks.know(bootId);
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

  readonly #noteDamage: NoteDamage = ({ bootId, file, unread, isNewest }) => {
    const name = placeOf(bootId, file);
    if (this.damaged.has(name) || (isNewest && bootId === this.#own.bootId)) return;
    this.damaged.add(name);
    this.#log.warn('a journal has bytes that cannot be read: entries after them are looked for and taken', {
      bootId,
      file,
      bytes: unread,
      remedy: DAMAGE_REMEDY,
    });
  };

  /** A file that was not understood was moved aside instead of deleted. */
  noteAside(bootId: string, path: string): void {
    this.damaged.delete(placeOf(bootId, basename(path)));
    this.#log.warn('a journal file that was not wholly understood was moved aside', { path, remedy: DAMAGE_REMEDY });
  }

  lines(): readonly OutboxLine[] {
    return [...this.#lines.values()];
  }

  /** Number of entries that the books have not taken yet; all entries of a journal whose position is not known yet. */
  get waiting(): number {
    let sum = 0;
    for (const line of this.#lines.values()) sum += Math.max(0, line.last - line.taken);
    return sum;
  }

  /** The next entries to send, at most `max` of one boot and no further than `maxAhead` beyond what was taken. */
  async next(max: number, maxAhead = Number.MAX_SAFE_INTEGER): Promise<OutgoingBatch | undefined> {
    for (const line of this.#lines.values()) {
      if (!line.isKnown || line.sent >= line.last || line.sent - line.taken >= maxAhead) continue;
      const after = line.sent;
      const entries = await this.#entriesAfter(line, max);
      // While files were read, the position may have moved; then these entries no longer follow it.
      if (line.sent !== after) continue;
      const [first] = entries;
      if (first === undefined) {
        if (line.ended) this.#end(line);
        continue;
      }
      return this.#batch(line, after, first, entries);
    }
    return undefined;
  }

  #batch(line: Line, after: number, first: JournalEntry, found: readonly JournalEntry[]): OutgoingBatch {
    const { bootId } = line;
    const { slice, until } = this.marks.sliceOf(bootId, first.sequence);
    let entries = found;
    if ((found.at(-1) as JournalEntry).sequence > until) {
      entries = found.slice(0, firstAfter(found, until));
      line.backlog = undefined;
    }
    line.sent = (entries.at(-1) as JournalEntry).sequence;
    if (first.sequence === after + 1) return { bootId, after, slice, entries };
    const hole = { bootId, from: after + 1, to: first.sequence - 1 };
    this.#log.error('the journal does not have entries that the books lack', hole);
    return { bootId, after, slice, entries: [{ ...first, after }, ...entries.slice(1)] };
  }

  async #entriesAfter(line: Line, max: number): Promise<readonly JournalEntry[]> {
    if (line.sent >= line.recentAfter) {
      line.backlog = undefined;
      return joined(line.recent, firstAfter(line.recent, line.sent), max);
    }
    const after = line.sent;
    if (line.backlog === undefined || line.backlog.at >= line.backlog.entries.length || line.backlog.after !== after) {
      line.backlog = undefined;
      for await (const entries of readJournal(this.#directory, line.bootId, after, this.#noteDamage)) {
        line.backlog = { entries: entries.filter((entry) => entry.sequence <= line.last), at: 0, after };
        break;
      }
    }
    const backlog = line.backlog;
    if (backlog === undefined) return [];
    const found = joined(backlog.entries, backlog.at, max);
    backlog.at += found.length;
    backlog.after = found.at(-1)?.sequence ?? backlog.after;
    return found;
  }

  /** The newest files of a finished boot were removed: missing entries are not waited for. */
  #end(line: Line): void {
    const hole = { bootId: line.bootId, from: line.sent + 1, to: line.last };
    this.#log.error('the journal does not have entries that the books lack', hole);
    line.last = line.sent;
  }

  /** Resolves when there is something new, or after `millis`. */
  wait(millis: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, millis);
      this.#waiting.add(wake);
    });
  }

  /**
   * Sets the position read from the database: the books have everything of the boot up to `through`, and nothing after
   * it.
   */
  standAt(bootId: string, through: number): void {
    const line = this.#lines.get(bootId);
    if (line === undefined || (line.isKnown && through === line.taken)) return;
    // The books cannot have entries that were never sent. So the position in the database was changed, and new entries
    // would not be counted.
    if (through > line.last)
      this.#log.error(
        'the books say that they hold entries that this journal never had: what it adds next would not count',
        {
          bootId,
          last: line.last,
          through,
          remedy: 'journal_positions was changed in the database: set it back, then run svc-pool audit',
        },
      );
    const isBack = through < line.taken;
    if (isBack) this.#log.warn('the books went back, sending again', { bootId, from: line.taken, to: through });
    line.taken = through;
    if (isBack || !line.isKnown || line.sent < through) {
      line.sent = through;
      line.backlog = undefined;
    }
    line.isKnown = true;
    if (!line.ended) this.#forget(line, firstAfter(line.recent, through));
    if (isBack) this.#wakeAll();
  }

  /** The books have just taken entries: they have everything of the boot up to `through`, and perhaps more. */
  taken(bootId: string, through: number): void {
    if (through > (this.#lines.get(bootId)?.taken ?? through)) this.standAt(bootId, through);
  }

  /** Everything that was sent but not taken is sent again. */
  rewind(bootId?: string): void {
    for (const line of this.#lines.values())
      if (bootId === undefined || line.bootId === bootId) {
        line.sent = line.taken;
        line.backlog = undefined;
      }
    this.#wakeAll();
  }

  /** The journal of an ended boot was removed. */
  drop(bootId: string): void {
    if (bootId === this.#own.bootId) return;
    this.#lines.delete(bootId);
    this.marks.drop(bootId);
  }

  #forget(line: Line, count: number): void {
    if (count === 0) return;
    line.recentAfter = (line.recent[count - 1] as JournalEntry).sequence;
    line.recent = line.recent.slice(count);
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

/** At most `max` entries, up to the first that does not follow the one before it. */
function joined(entries: readonly JournalEntry[], from: number, max: number): readonly JournalEntry[] {
  const found = entries.slice(from, from + max);
  const first = found[0]?.sequence ?? 0;
  if (found.length === 0 || found.at(-1)?.sequence === first + found.length - 1) return found;
  return found.slice(
    0,
    found.findIndex((entry, i) => entry.sequence !== first + i),
  );
}

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
