/** Sessions whose connection ended, kept for a while to be resumed (S55). Several instances may share one shelf. */
import type { SessionRecord } from './hub.ts';

export interface SessionShelf {
  put(record: SessionRecord): Promise<void>;
  /** The record, which is then nobody else's any more. */
  take(id: string): Promise<SessionRecord | null>;
}

export type SessionShelfOptions = { readonly resumeMillis: number; readonly resumeSessions: number };

export class LocalSessionShelf implements SessionShelf {
  readonly #options: SessionShelfOptions;
  readonly #now: () => number;
  readonly #kept = new Map<string, { readonly record: SessionRecord; readonly atMillis: number }>();

  constructor(options: SessionShelfOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  async put(record: SessionRecord): Promise<void> {
    const now = this.#now();
    this.#kept.delete(record.id);
    this.#kept.set(record.id, { record, atMillis: now });
    for (const [id, { atMillis }] of this.#kept) {
      if (this.#kept.size <= this.#options.resumeSessions && now - atMillis <= this.#options.resumeMillis) break;
      this.#kept.delete(id);
    }
  }

  async take(id: string): Promise<SessionRecord | null> {
    const kept = this.#kept.get(id);
    this.#kept.delete(id);
    return kept === undefined || this.#now() - kept.atMillis > this.#options.resumeMillis ? null : kept.record;
  }
}
