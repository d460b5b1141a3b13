/**
 * Sessions whose connection ended, kept for a while to be resumed (S55). Several instances may share one shelf. Anyone
 * can create sessions by logging in, so those with an accepted share have a separate limit that others cannot exhaust;
 * a banned one is kept until its ban ends (S59).
 */
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { packRecord, unpackRecord } from './packed-record.ts';
import type { SessionRecord } from './session-record.ts';

export interface SessionShelf {
  /** Resolves with where it waits: in this process, or where other instances find it. */
  put(record: SessionRecord): Promise<'here' | 'shared'>;
  /** Removes and returns the record: it can be resumed once. */
  take(id: string): Promise<SessionRecord | null>;
}

export type SessionShelfOptions = { readonly resumeMillis: number; readonly resumeSessions: number };

/** The limit for sessions without a share, and for banned ones, is lower by this factor. */
const FEWER = 4;

/** Whether it has done work. Records without work cost nothing to make, so fewer of them are kept. */
export const isProven = ({ accepted }: SessionRecord): boolean => accepted > 0;

/** How long from now a record is worth keeping. */
export const keptMillis = (record: SessionRecord, resumeMillis: number, nowMillis: number): number =>
  Math.max(resumeMillis, Math.ceil(record.bannedUntilMillis - nowMillis));

/** Records with about the same lifetime, oldest first. */
class Row {
  readonly #capacity: number;
  readonly #kept = new Map<string, { readonly packed: string; readonly untilMillis: number }>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  put(record: SessionRecord, untilMillis: number, nowMillis: number): void {
    this.#kept.delete(record.id);
    this.#kept.set(record.id, { packed: packRecord(record), untilMillis });
    for (const [id, kept] of this.#kept) {
      if (this.#kept.size <= this.#capacity && kept.untilMillis >= nowMillis) break;
      this.#kept.delete(id);
    }
  }

  take(id: string, nowMillis: number): SessionRecord | null {
    const kept = this.#kept.get(id);
    if (kept === undefined) return null;
    this.#kept.delete(id);
    return kept.untilMillis < nowMillis ? null : unpackRecord(kept.packed);
  }
}

export class LocalSessionShelf implements SessionShelf {
  readonly #options: SessionShelfOptions;
  readonly #now: SteadyClock;
  readonly #proven: Row;
  readonly #new: Row;
  readonly #banned: Row;

  constructor(options: SessionShelfOptions, now: SteadyClock) {
    this.#options = options;
    this.#now = now;
    const fewer = Math.ceil(options.resumeSessions / FEWER);
    this.#proven = new Row(options.resumeSessions);
    this.#new = new Row(fewer);
    this.#banned = new Row(fewer);
  }

  async put(record: SessionRecord): Promise<'here'> {
    const now = this.#now();
    const row = record.bannedUntilMillis > now ? this.#banned : isProven(record) ? this.#proven : this.#new;
    row.put(record, now + keptMillis(record, this.#options.resumeMillis, now), now);
    return 'here';
  }

  async take(id: string): Promise<SessionRecord | null> {
    const now = this.#now();
    return this.#banned.take(id, now) ?? this.#proven.take(id, now) ?? this.#new.take(id, now);
  }
}
