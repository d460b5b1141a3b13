/**
 * Documents that are read together may have different ages, because a pool and proxies cache answers. Anything that
 * looks false is read again when all answers are newer, before the pool is accused.
 */
import { NEWER_MILLIS } from '../../protocol/books/books-evidence.ts';

const MAX_KEPT = 256;
/** A suspicion that is not checked for this long is dropped. A pool that only fails is reported long before. */
const UNSEEN_MILLIS = 24 * 3_600_000;

export class Suspicions {
  readonly #nowMillis: () => number;
  /** What looked false, since when, and when it was last checked. */
  readonly #suspected = new Map<string, { readonly since: number; readonly seen: number }>();

  /** When reading of the current documents started. */
  #began: number | undefined;

  constructor(nowMillis: () => number) {
    this.#nowMillis = nowMillis;
  }

  /** Starts a new round of reading. */
  begin(): void {
    this.#began = this.#nowMillis();
  }

  get size(): number {
    return this.#suspected.size;
  }

  /** Whether a verdict can be acted on: 'false' must occur twice, some time apart. */
  isSure(what: string, isFalse: boolean, apartMillis: number = NEWER_MILLIS): boolean {
    const now = this.#nowMillis();
    const since = this.#suspected.get(what)?.since;
    if (isFalse && (since === undefined || (this.#began ?? now) - since < apartMillis)) {
      this.#suspected.set(what, { since: since ?? now, seen: now });
      for (const oldest of this.#suspected.keys()) if (this.#suspected.size > MAX_KEPT) this.#suspected.delete(oldest);
      return false;
    }
    this.#suspected.delete(what);
    return true;
  }

  dropUnseen(): void {
    const now = this.#nowMillis();
    for (const [what, { seen }] of this.#suspected) if (now - seen > UNSEEN_MILLIS) this.#suspected.delete(what);
  }
}
