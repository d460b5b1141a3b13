/**
 * Ended sessions on their way to the main thread: all of one turn of the event loop in one message. After a break in the network thousands
 * end at once.
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

  /** Before the main thread hears that a session is not here: then it has it, or gets it first. */
  flush(): void {
    const records = this.#records;
    this.#records = [];
    if (records.length > 0) this.#send(records);
  }
}
