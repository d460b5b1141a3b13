/**
 * The answer to a call for a request (docs/wallet.md, Payments 2 to 5): the request's current state, once the node has
 * accepted or refused its transactions, or that the outcome is not known yet.
 */

import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Follower } from '../chain/follower.ts';
import type { Book } from '../state/book.ts';
import type { Journal } from '../state/journal.ts';
import { asOf, type OutgoingRecord, type RequestRecord } from '../state/records.ts';
import type { WalletStore } from '../state/store.ts';
import { WalletError, type WalletErrorCode } from '../wallet-error.ts';

/** A request with the current records of its transactions. */
export type Outcome = {
  readonly request: RequestRecord;
  readonly transactions: readonly OutgoingRecord[];
  readonly duplicate: boolean;
};

export type AnswersOptions = {
  /** How long a call waits for the node before it answers that the outcome is unknown. */
  readonly answerMillis: number;
};

export type AnswersDependencies = {
  readonly book: Book;
  readonly store: Pick<WalletStore, 'request' | 'outgoing'>;
  /** The disk may be behind the book: what has left the book is read when it is written. */
  readonly journal: Pick<Journal, 'written'>;
  readonly follower: Pick<Follower, 'soundHeight'>;
  /** A monotonic clock: setting the system clock back must not make a call wait longer. */
  readonly steady: SteadyClock;
};

export class Answers {
  readonly #options: AnswersOptions;
  readonly #with: AnswersDependencies;
  readonly #watchers = new Set<() => void>();

  constructor(options: AnswersOptions, dependencies: AnswersDependencies) {
    this.#options = options;
    this.#with = dependencies;
  }

  /** A request id that was used before. The disk is read only if the id may be there. */
  async request(requestId: string): Promise<RequestRecord | undefined> {
    const { book, store, journal } = this.#with;
    const recent = book.recent.get(requestId);
    if (recent !== undefined || !book.requestIds.mayHave(requestId)) return recent;
    await journal.written();
    return await store.request(requestId);
  }

  /** The state of a request id, if it was ever used. */
  async outcome(requestId: string, duplicate: boolean): Promise<Outcome | undefined> {
    const request = await this.request(requestId);
    if (request === undefined) return undefined;
    return { request, transactions: await this.transactions(request), duplicate };
  }

  /** The current records of a request's transactions. */
  async transactions(request: RequestRecord): Promise<OutgoingRecord[]> {
    const { store, journal, book, follower } = this.#with;
    const found: OutgoingRecord[] = [];
    for (const name of request.transactions) {
      const open = book.open.get(name);
      if (open === undefined) await journal.written();
      const record = open ?? (await store.outgoing(name));
      if (record !== undefined) found.push(asOf(record, follower.soundHeight));
    }
    return found;
  }

  /** Something changed: waiting calls check again. */
  changed(): void {
    for (const look of [...this.#watchers]) look();
  }

  /** Waits until the request has an answer, or says that the outcome is not known yet. */
  async wait(requestId: string, duplicate: boolean): Promise<Outcome> {
    const deadline = this.#with.steady() + this.#options.answerMillis;
    for (;;) {
      const changed = Promise.withResolvers<void>();
      this.#watchers.add(changed.resolve);
      const timer = setTimeout(changed.resolve, Math.max(0, deadline - this.#with.steady()));
      try {
        const outcome = await this.outcome(requestId, duplicate);
        if (outcome === undefined) throw new Error('a request vanished');
        if (isAnswered(outcome)) return outcome;
        if (this.#with.steady() >= deadline) throw unknown(outcome);
        await changed.promise;
      } finally {
        clearTimeout(timer);
        this.#watchers.delete(changed.resolve);
      }
    }
  }
}

function unknown({ request, transactions }: Outcome): WalletError {
  return new WalletError(
    'outcome_unknown',
    request.state === 'merging'
      ? 'outputs are being merged; the payment follows'
      : 'the node has not confirmed that it has the transaction',
    { request_id: request.requestId, transaction: transactions.at(-1)?.transaction ?? null },
  );
}

/** Throws when the answer is a refusal. */
function isAnswered({ request, transactions }: Outcome): boolean {
  if (request.state === 'failed') {
    const { code, message } = request.failure as NonNullable<RequestRecord['failure']>;
    throw new WalletError(code as WalletErrorCode, message, { request_id: request.requestId });
  }
  if (request.state === 'merging') return false;
  const refused = transactions.find(({ state }) => state === 'refused');
  if (refused !== undefined)
    throw new WalletError('node_refused', `the node refused the transaction: ${refused.reason}`, {
      request_id: request.requestId,
      transaction: refused.transaction,
    });
  return transactions.every(({ state }) => state !== 'signed');
}
