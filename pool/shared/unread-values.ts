/** Values in Redis that are ignored: counted, and logged at most once a minute of each kind. */
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { type Opened, type Purpose, SHARED_FORMAT } from './seal.ts';

const QUIET_MILLIS = 60_000;

export type UnreadReason = 'other_format' | 'not_ours' | 'damaged';

export class UnreadValues {
  readonly counts: Record<UnreadReason, number> = { other_format: 0, not_ours: 0, damaged: 0 };
  readonly #log: Logger;
  readonly #now: SteadyClock;
  readonly #told = new Map<string, number>();

  constructor(dependencies: { log: Logger; now: SteadyClock }) {
    this.#log = dependencies.log;
    this.#now = dependencies.now;
  }

  note(purpose: Purpose, opened: Exclude<Opened, { kind: 'payload' }> | { readonly kind: 'damaged' }): void {
    this.counts[opened.kind]++;
    const key = `${purpose} ${opened.kind}`;
    const told = this.#told.get(key);
    if (told !== undefined && Math.abs(this.#now() - told) < QUIET_MILLIS) return;
    this.#told.set(key, this.#now());
    if (opened.kind === 'other_format')
      this.#log.error(
        'an instance of another release uses this Redis: what it writes is left unread, and its shares wait',
        {
          what: purpose,
          itsFormat: opened.format,
          ourFormat: SHARED_FORMAT,
          remedy: 'run the same release in all instances; journals keep the shares until then',
        },
      );
    else if (opened.kind === 'not_ours')
      this.#log.error('a value in Redis was not written by an instance of this pool: it is left unread', {
        what: purpose,
        remedy: 'find out who else can write to this Redis; instances of one pool use one database',
      });
    else this.#log.warn('a value in Redis cannot be read', { what: purpose });
  }
}
