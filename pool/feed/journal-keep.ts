/**
 * Retention of journals. A segment that is completely in the books is marked, and deleted only some time later: a
 * database that is restored from a copy within that time gets the missing entries again. The size of marked segments is
 * limited, and the last tenth of the disk is reserved for new shares. A file that was not wholly understood is moved
 * aside instead, and stays there until a person takes it away.
 */
import { statfs } from 'node:fs/promises';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import {
  dropJournal,
  dropSegment,
  filesAside,
  journalBoots,
  journalSegments,
  markSegment,
  type Segment,
  segmentState,
} from '../journal/journal.ts';
import type { Outbox, OutboxLine } from './outbox.ts';

export type JournalKeepOptions = {
  readonly directory: string;
  /** How long the books must have had a segment. */
  readonly keepMillis: number;
  /** Maximum size of the segments that are in the books. */
  readonly maxBytes: number;
};

/** This fraction of the disk (1 in N) is reserved for new shares. */
const FREE_PART = 10;
const WARN_MILLIS = 3_600_000;

type Kept = { readonly bootId: string; readonly segment: Segment; readonly bytes: number; readonly atMillis: number };

export class JournalKeep {
  readonly #options: JournalKeepOptions;
  readonly #outbox: Outbox;
  readonly #log: Logger;
  readonly #now: SteadyClock;
  #warnedAt = Number.NEGATIVE_INFINITY;
  /** Size of the segments kept only for a possible restore. */
  bytes = 0;
  /** Files with bytes that were not understood, moved aside or still in their place. */
  damaged = 0;

  constructor(options: JournalKeepOptions, dependencies: { outbox: Outbox; log: Logger; now: SteadyClock }) {
    this.#options = options;
    this.#outbox = dependencies.outbox;
    this.#log = dependencies.log;
    this.#now = dependencies.now;
  }

  /** Marks segments that are in the books, and removes those kept long enough or beyond the limits. */
  async round(): Promise<void> {
    const { directory, keepMillis, maxBytes } = this.#options;
    const boots = new Set(await journalBoots(directory));
    const kept: Kept[] = [];
    for (const line of this.#outbox.lines()) if (boots.has(line.bootId)) kept.push(...(await this.#mark(line)));
    kept.sort((a, b) => a.atMillis - b.atMillis || a.segment.start - b.segment.start);
    let bytes = kept.reduce((sum, each) => sum + each.bytes, 0);
    let missing = await this.#missingBytes();
    for (const each of kept) {
      const age = this.#now() - each.atMillis;
      if (age < keepMillis && bytes <= maxBytes && missing <= 0) break;
      const aside = await dropSegment(directory, each.bootId, each.segment);
      if (aside !== undefined) this.#outbox.noteAside(each.bootId, aside);
      bytes -= each.bytes;
      missing -= each.bytes;
      if (age < keepMillis) this.#warn(age);
    }
    this.bytes = bytes;
    for (const line of this.#outbox.lines()) if (line.ended && boots.has(line.bootId)) await this.#dropEmpty(line);
    this.damaged = (await filesAside(directory)) + this.#outbox.damaged.size;
  }

  #warn(ageMillis: number): void {
    if (this.#now() - this.#warnedAt < WARN_MILLIS) return;
    this.#warnedAt = this.#now();
    const minutes = Math.floor(ageMillis / 60_000);
    this.#log.warn('no room to keep journals for as long as they should be', { minutes });
  }

  /** The marked segments of a boot. The one being written is never among them. */
  async #mark(line: OutboxLine): Promise<Kept[]> {
    const { directory } = this.#options;
    const { bootId } = line;
    for (const segment of await journalSegments(directory, bootId)) {
      const end = endOf(segment, line);
      const isTaken = end !== undefined && end <= line.taken;
      // A wrong clock must not keep a segment for ever: a mark in the future is corrected.
      const isWrong = segment.isTaken && (await segmentState(directory, bootId, segment)).atMillis > this.#now();
      if (isTaken === segment.isTaken && !isWrong) continue;
      const aside = await markSegment(directory, bootId, segment, isTaken, this.#now());
      if (aside !== undefined) this.#outbox.noteAside(bootId, aside);
    }
    const marked = (await journalSegments(directory, bootId)).filter((segment) => segment.isTaken);
    return Promise.all(
      marked.map(async (segment) => ({ bootId, segment, ...(await segmentState(directory, bootId, segment)) })),
    );
  }

  async #dropEmpty({ bootId, last, taken }: OutboxLine): Promise<void> {
    const { directory } = this.#options;
    if (taken < last || (await journalSegments(directory, bootId)).length > 0) return;
    for (const aside of await dropJournal(directory, bootId)) this.#outbox.noteAside(bootId, aside);
    this.#outbox.drop(bootId);
  }

  /** Bytes that are lacking until a tenth of the disk is free. */
  async #missingBytes(): Promise<number> {
    const { blocks, bavail, bsize } = await statfs(this.#options.directory);
    return Math.max(0, (blocks / FREE_PART - bavail) * bsize);
  }
}

/** The last sequence of a segment; undefined while it is being written. */
function endOf({ nextStart }: Segment, { ended, last }: OutboxLine): number | undefined {
  if (nextStart !== undefined) return nextStart - 1;
  return ended ? last : undefined;
}
