/**
 * Keeps the log short whatever a server does: of each kind of line (its message, with the pool, the device and the error code it
 * names, and whether a session was resumed) the first is written at once, and then one a minute that says how many more there were.
 * Debug lines come at most once a second. Pure; the time is passed in.
 */
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { LogFields, LogLevel } from '../../runtime/log/log.ts';

export const LINE_LIMIT = { everyMillis: 60_000, debugMillis: 1_000, kinds: 128 } as const;

export type Write = (level: LogLevel, message: string, fields: LogFields) => void;

type Kind = {
  readonly level: LogLevel;
  readonly message: string;
  writtenAt: number;
  /** The last line that was held back, and how many there were. */
  held: LogFields | undefined;
  count: number;
};

export class LineLimit {
  readonly #write: Write;
  readonly #now: MonotonicClock;
  readonly #kinds = new Map<string, Kind>();

  constructor(write: Write, now: MonotonicClock) {
    this.#write = write;
    this.#now = now;
  }

  note(level: LogLevel, message: string, fields: LogFields): void {
    const now = this.#now();
    const key = [level, message, fields.pool, fields.device, fields.code, fields.resumed].join('\0');
    const kind = this.#kinds.get(key);
    if (kind === undefined) {
      this.#makeRoom();
      this.#kinds.set(key, { level, message, writtenAt: now, held: undefined, count: 0 });
      this.#write(level, message, fields);
      return;
    }
    kind.held = fields;
    kind.count++;
    this.#flush(key, kind, now);
  }

  /** Call about once a second: lines that were held back for long enough are written. */
  tick(): void {
    const now = this.#now();
    for (const [key, kind] of this.#kinds) this.#flush(key, kind, now);
  }

  /** The last lines of a miner that ends: nothing is held back any longer. */
  end(): void {
    for (const kind of this.#kinds.values()) this.#writeHeld(kind);
    this.#kinds.clear();
  }

  #flush(key: string, kind: Kind, now: number): void {
    const { everyMillis, debugMillis } = LINE_LIMIT;
    // A clock that was set back must not silence a kind.
    const passed = Math.abs(now - kind.writtenAt);
    if (passed < (kind.level === 'debug' ? debugMillis : everyMillis)) return;
    if (kind.held === undefined) {
      this.#kinds.delete(key);
      return;
    }
    this.#writeHeld(kind);
    kind.writtenAt = now;
  }

  #writeHeld(kind: Kind): void {
    const { held, count, level, message } = kind;
    if (held === undefined) return;
    kind.held = undefined;
    kind.count = 0;
    this.#write(level, message, count === 1 ? held : { ...held, lines: count });
  }

  /** Fields may contain text chosen by a server: the oldest kind is dropped, after its held-back line is written. */
  #makeRoom(): void {
    const [oldest] = this.#kinds;
    if (oldest === undefined || this.#kinds.size < LINE_LIMIT.kinds) return;
    this.#kinds.delete(oldest[0]);
  }
}
