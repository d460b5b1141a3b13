/**
 * Sends ended sessions to the main thread: all of one turn of the event loop in one message. After a network failure
 * thousands end at once.
 */
import type { SessionRecord } from '../session/session-record.ts';

export class EndedSessions {
  readonly #soon: (run: () => void) => void;
  readonly #send: (records: readonly SessionRecord[]) => void;
  #records: SessionRecord[] = [];

  constructor(soon: (run: () => void) => void, send: (records: readonly SessionRecord[]) => void) {
    this.#soon = soon;
    this.#send = send;
  }

  add(record: SessionRecord): void {
    if (this.#records.push(record) === 1) this.#soon(() => this.flush());
  }

  /** Called before the main thread is answered that a session is not here: so it receives an ended session first. */
  flush(): void {
    const records = this.#records;
    this.#records = [];
    if (records.length > 0) this.#send(records);
  }
}
