/**
 * Sends signed transactions and keeps sending the same bytes until a finalized cut decides their fate. After a lost
 * answer the status is queried, and no new transaction is made. A refusal counts only as the answer to the very first
 * attempt: afterwards the node may already have the transaction.
 */
import { ApiError } from '../../protocol/api/client.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { batches, isAway, type NodeClient } from '../chain/node-link.ts';
import type { Book } from '../state/book.ts';
import type { Journal } from '../state/journal.ts';
import type { OutgoingRecord } from '../state/records.ts';

const FIRST_WAIT_MILLIS = 1_000;
const LONGEST_WAIT_MILLIS = 60_000;
/** Transactions asked for at once: far fewer than a node allows, so that reading the answer holds up no call. */
const STATUS_BATCH = 64;
/** How often the node is asked whether it still has accepted transactions; finality comes from the cuts. */
const STATUS_MILLIS = 30_000;
/** Submissions on their way to the node at one time. */
const IN_FLIGHT = 16;

export type SubmitterDependencies = {
  readonly client: NodeClient;
  readonly book: Book;
  readonly journal: Journal;
  readonly log: Logger;
  readonly now: SteadyClock;
  /** The state of a transaction on disk has changed. */
  readonly changed: (record: OutgoingRecord) => void;
};

export class Submitter {
  readonly #with: SubmitterDependencies;
  readonly #sending = new Set<string>();
  readonly #next = new Map<string, { at: number; wait: number }>();
  readonly #queue: (() => void)[] = [];
  #free = IN_FLIGHT;

  constructor(dependencies: SubmitterDependencies) {
    this.#with = dependencies;
  }

  /** `first`: these bytes were never sent before. Resolves when the attempt is over, whatever its result. */
  async send(transaction: string, first: boolean): Promise<void> {
    if (this.#sending.has(transaction)) return;
    this.#sending.add(transaction);
    await this.#slot();
    try {
      await this.#attempt(transaction, first);
    } finally {
      this.#sending.delete(transaction);
      this.#free++;
      this.#queue.shift()?.();
    }
  }

  /** The node is available again: everything is sent at once. */
  retryNow(): void {
    this.#next.clear();
  }

  /** Asks for the status of the open transactions and sends again those that the node does not have. */
  async tick(): Promise<void> {
    const { client, book, journal, now } = this.#with;
    for (const transaction of this.#next.keys()) if (!book.open.has(transaction)) this.#next.delete(transaction);
    const due = [...book.open.values()].filter(
      ({ transaction, state, reopened }) =>
        state !== 'refused' &&
        !reopened &&
        !this.#sending.has(transaction) &&
        (this.#next.get(transaction)?.at ?? 0) <= now(),
    );
    // Not on disk yet: it is sent after it was written, and not at all if the write fails.
    if (due.length > 0) await journal.written();
    for (const batch of batches(due, STATUS_BATCH)) {
      const answer = await client.transactionStatuses({ transaction_ids: batch.map((record) => record.transaction) });
      const resend = new Set(answer.unknown);
      for (const { transaction_id, lifecycle } of answer.statuses) {
        // A failure reported by a server is final only in a finalized cut, which the follower reads.
        if (lifecycle === 'failed') resend.add(transaction_id);
        else await this.#move(transaction_id, 'submitted', null);
      }
      for (const { transaction } of batch) this.#later(transaction, resend.has(transaction));
      await Promise.all([...resend].map((transaction) => this.send(transaction, false)));
    }
  }

  async #attempt(transaction: string, first: boolean): Promise<void> {
    const { client, book, journal, log } = this.#with;
    const record = book.open.get(transaction);
    if (record === undefined) return;
    journal.check();
    try {
      await client.submitTransaction(Buffer.from(record.wireHex, 'hex'));
      this.#later(transaction, false);
      await this.#move(transaction, 'submitted', null);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const reason = error.detail?.reason ?? error.detail?.failure ?? error.code;
      const refused = !isAway(error) && error.code !== 'client_outcome_unknown' && error.detail?.failure !== 'dropped';
      log.warn(refused ? 'node refused a transaction' : 'submission without an answer', { transaction, first, reason });
      if (refused && first) await this.#move(transaction, 'refused', `${reason}: ${error.message}`);
      else this.#later(transaction, true);
    }
  }

  async #move(transaction: string, state: 'submitted' | 'refused', reason: string | null): Promise<void> {
    const { book, journal, changed } = this.#with;
    const record = book.open.get(transaction);
    if (record === undefined || record.state === state) return;
    const moved = { ...record, state, reason };
    // Not flushed: if it is lost, the transaction is only queried or sent once more.
    await journal.commit({ outgoing: [moved] }, false);
    changed(moved);
  }

  #later(transaction: string, missing: boolean): void {
    const before = this.#next.get(transaction)?.wait ?? FIRST_WAIT_MILLIS / 2;
    const wait = missing ? Math.min(2 * before, LONGEST_WAIT_MILLIS) : STATUS_MILLIS;
    this.#next.set(transaction, { at: this.#with.now() + wait, wait: missing ? wait : FIRST_WAIT_MILLIS });
  }

  async #slot(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else
      await new Promise<void>((resolve) => {
        this.#queue.push(() => {
          this.#free--;
          resolve();
        });
      });
  }
}
