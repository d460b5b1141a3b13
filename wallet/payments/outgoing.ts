/**
 * Payments (docs/wallet.md, Payments). Order of one payment: look up the request id; choose and reserve outputs; sign;
 * write request, signed transaction and reservation as one durable step; only then send. Wherever a crash falls, the
 * next start finds either nothing, and the id is free, or the signed transaction, and sends exactly that.
 */
import { createHash } from 'node:crypto';
import type { NetworkName } from '../../protocol/network.ts';
import type { SteadyClock, WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Follower } from '../chain/follower.ts';
import type { OwnSpends } from '../chain/own-spends.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { Book } from '../state/book.ts';
import type { Journal } from '../state/journal.ts';
import type { OperationRecord, OutgoingRecord, Recipient, RequestKind, RequestRecord } from '../state/records.ts';
import type { WalletStore } from '../state/store.ts';
import { WalletError } from '../wallet-error.ts';
import { Answers, type AnswersOptions, type Outcome } from './answers.ts';
import { Commitment } from './commitment.ts';
import { Merging } from './merging.ts';
import { type MoveOrder, type PayOrder, Planning, type PlanningOptions, type Quote } from './planning.ts';
import type { Submitter } from './submitter.ts';

/** A staking operation as requested. Its details are read from the node when it is prepared. */
export type OperationOrder = {
  readonly requestId: string;
  readonly kind: OperationRecord['kind'];
  /** The position that it changes: one operation at a time. */
  readonly position: string | undefined;
  /** The validator that it changes, if it changes no position: one operation of a kind at a time. */
  readonly validator?: string;
  readonly compoundFirst: boolean;
  readonly params: unknown;
  /** Refuses, or returns the operation to be signed. */
  readonly prepare: () => Promise<OperationRecord>;
  /** Adds a signature that is part of the operation, after all other checks. */
  readonly complete?: (operation: OperationRecord) => Promise<OperationRecord>;
};

export type OutgoingOptions = PlanningOptions & AnswersOptions;

export type OutgoingDependencies = {
  readonly book: Book;
  readonly store: WalletStore;
  readonly journal: Journal;
  readonly keyring: Keyring;
  readonly follower: Follower;
  readonly ownSpends: OwnSpends;
  readonly submitter: Submitter;
  readonly network: NetworkName;
  /** Refuses an operation whose terms have changed. */
  readonly recheck: (operation: OperationRecord) => Promise<void>;
  readonly log: Logger;
  readonly now: WallClock;
  readonly steady: SteadyClock;
};

const busyText = (kind: OperationOrder['kind']): string =>
  kind === 'validator_heartbeat'
    ? 'the heartbeat of this validator was already sent this epoch: it waits for its cut'
    : 'another operation of this kind on the validator is under way';

const digestOf = (params: unknown): string =>
  createHash('sha256').update(JSON.stringify(params)).digest('hex').slice(0, 32);

export class Outgoing {
  readonly #with: OutgoingDependencies;
  readonly #planning: Planning;
  readonly #answers: Answers;
  readonly #commitment: Commitment;
  readonly #merging: Merging;
  readonly #running = new Map<string, Promise<void>>();
  /** Positions and validators that an operation is being made for. */
  readonly #claimed = new Set<string>();

  constructor(options: OutgoingOptions, dependencies: OutgoingDependencies) {
    this.#with = dependencies;
    this.#planning = new Planning(options, dependencies);
    this.#answers = new Answers(options, dependencies);
    this.#commitment = new Commitment({ ...dependencies, answers: this.#answers });
    this.#merging = new Merging({
      ...dependencies,
      planning: this.#planning,
      commitment: this.#commitment,
      answers: this.#answers,
    });
  }

  /** Restores the state of an earlier process: reservations first, before any call is answered. */
  async resume(): Promise<void> {
    for (const record of this.#with.book.open.values()) if (!record.reopened) this.#commitment.reserve(record);
    await this.#merging.resume();
    this.#reserveOpen();
  }

  /** Merges that finished while the wallet was not running. */
  continueAll(): Promise<void> {
    return this.#merging.continueAll();
  }

  get mergingRequests(): IterableIterator<RequestRecord> {
    return this.#commitment.merging.values();
  }

  /** The current records of a request's transactions. */
  transactionsOf(request: RequestRecord): Promise<OutgoingRecord[]> {
    return this.#answers.transactions(request);
  }

  /** A repetition gets the outcome of the request; nothing new is made. */
  async isKnown(requestId: string): Promise<boolean> {
    return this.#running.has(requestId) || (await this.#answers.request(requestId)) !== undefined;
  }

  /** Requests that are being signed are on no list yet, and may be paid all the same: whoever lists them waits. */
  async listed(prefix: string): Promise<void> {
    const begun = [...this.#running].filter(([requestId]) => requestId.startsWith(prefix));
    await Promise.allSettled(begun.map(([, run]) => run));
    await this.#with.journal.settled();
  }

  async pay(order: PayOrder): Promise<Outcome> {
    return await this.#once(order.requestId, order.params, () => this.#payNow(order));
  }

  /** A payment of its fee and its stake that carries an operation: everything else is as for `pay`. */
  async operate(order: OperationOrder): Promise<Outcome> {
    return await this.#once(order.requestId, order.params, () =>
      this.#claiming(order, async () => {
        const prepared = await this.#prepared(order);
        if (order.complete === undefined) return await this.#payNow(prepared);
        this.#planning.quotePay(prepared);
        await this.#payNow({ ...prepared, operation: await order.complete(prepared.operation) });
      }),
    );
  }

  /** What an operation would do and cost now. A used request id gets the outcome of its request. */
  async quoteOperation(order: OperationOrder): Promise<Outcome | (Quote & { readonly operation: OperationRecord })> {
    const before = await this.#answers.outcome(order.requestId, true);
    if (before !== undefined) return before;
    return await this.#claiming(order, async () => {
      const prepared = await this.#prepared(order);
      return { ...this.#planning.quotePay(prepared), operation: prepared.operation };
    });
  }

  async #payNow(order: PayOrder): Promise<void> {
    const ask = this.#planning.ask(order);
    const plan = this.#planning.plan(ask, order);
    const request = this.#newRequest(order, order.recipients, ask.feePerMass);
    if ('held' in plan) return await this.#merging.start(request, order, ask, plan.held);
    await this.#commitment.commit(request, [this.#planning.payDraft(plan, order)], 'pay');
  }

  async #prepared(order: OperationOrder): Promise<PayOrder & { readonly operation: OperationRecord }> {
    // A wallet that must not pay refuses before the node is asked.
    this.#planning.feePerMass();
    const { requestId, kind, compoundFirst, params } = order;
    const operation = await order.prepare();
    const plain = { recipients: [], payload: new Uint8Array(0), subtractFee: false, fromAddress: undefined };
    return { requestId, kind, compoundFirst, params, ...plain, operation };
  }

  /** Two concurrent operations on one position would each ignore the other's change. */
  async #claiming<T>({ position, validator, kind }: OperationOrder, run: () => Promise<T>): Promise<T> {
    const claim = position ?? (validator && `${kind} ${validator}`);
    if (claim === undefined) return await run();
    const isSame = (one: OperationRecord) =>
      position === undefined ? one.kind === kind && one.validator === validator : one.position === position;
    const open =
      [...this.#with.book.open.values()].find(
        ({ operation, state }) => operation !== undefined && state !== 'refused' && isSame(operation),
      ) ?? this.#mergingFor(isSame);
    if (open !== undefined || this.#claimed.has(claim))
      throw position === undefined
        ? new WalletError('validator_busy', busyText(kind), { validator, request_id: open?.requestId ?? null })
        : new WalletError('position_busy', 'another operation on this position is under way', {
            position,
            request_id: open?.requestId ?? null,
          });
    this.#claimed.add(claim);
    try {
      return await run();
    } finally {
      this.#claimed.delete(claim);
    }
  }

  /** A request whose operation follows once its outputs are merged. */
  #mergingFor(isSame: (operation: OperationRecord) => boolean): RequestRecord | undefined {
    for (const request of this.mergingRequests)
      if (request.operation !== undefined && isSame(request.operation)) return request;
    return undefined;
  }

  async move(order: MoveOrder): Promise<Outcome> {
    return await this.#once(order.requestId, order.params, async () => {
      const { found, left, feePerMass } = this.#planning.moves(order);
      const amount = found.reduce((total, one) => total + one.amount, 0n);
      const request = this.#newRequest(order, [{ to: order.to, amount }], feePerMass);
      const drafts = found.map((one) => this.#planning.moveDraft(one, order.to));
      await this.#commitment.commit({ ...request, remainingOutputs: left }, drafts, 'pay');
    });
  }

  /** Its cost now. A used request id is answered with its state, here and below. */
  async quotePay(order: PayOrder): Promise<Outcome | Quote> {
    return (await this.#answers.outcome(order.requestId, true)) ?? this.#planning.quotePay(order);
  }

  async quoteMove(order: MoveOrder): Promise<Outcome | Quote> {
    return (await this.#answers.outcome(order.requestId, true)) ?? this.#planning.quoteMove(order);
  }

  /** Called by the follower for every cut, right after it was applied: frees what void transactions held. */
  cutApplied(outgoing: readonly OutgoingRecord[]): void {
    const { book } = this.#with;
    for (const record of outgoing) {
      const merging = record.purpose === 'merge' && this.#merging.has(record.requestId);
      // Also those that this chain has not made: it may make them later.
      const isOwn = (key: string) => book.holderOf(key) === record.requestId;
      if (record.state === 'void' && !merging) book.release(record.inputs.filter(isOwn));
      if (merging) this.#merging.settled(record.requestId);
    }
    if (outgoing.length > 0) this.#reserveOpen();
    this.changed();
  }

  /** Payments that were settled in a chain that was rolled back: until they have expired, their outputs stay reserved. */
  reopened(): void {
    this.#reserveOpen();
    this.changed();
  }

  #reserveOpen(): void {
    for (const record of this.#with.book.open.values()) this.#commitment.reserve(record);
  }

  /** Something changed: waiting calls check again. */
  changed(): void {
    this.#answers.changed();
  }

  #newRequest(
    order: { requestId: string; kind: RequestKind; params: unknown; operation?: OperationRecord | undefined },
    recipients: readonly Recipient[],
    feePerMass: bigint,
  ): RequestRecord {
    const { requestId, kind, params, operation } = order;
    return {
      requestId,
      kind,
      paramsDigest: digestOf(params),
      createdMillis: this.#with.now(),
      state: 'sent',
      recipients,
      fee: 0n,
      feePerMass,
      transactions: [],
      remainingOutputs: 0,
      merge: null,
      failure: null,
      ...(operation && { operation }),
    };
  }

  /** One run per request id at a time: repetitions join or find what is on disk. */
  async #once(requestId: string, params: unknown, run: () => Promise<void>): Promise<Outcome> {
    // The book may contain a request that could not be written; after a restart it is gone.
    this.#with.journal.check();
    const joined = this.#running.get(requestId);
    if (joined !== undefined) {
      await joined;
      return await this.#answers.wait(requestId, true);
    }
    let duplicate = true;
    const running = (async () => {
      const before = await this.#answers.request(requestId);
      if (before === undefined) {
        await run();
        duplicate = false;
      } else if (before.paramsDigest !== digestOf(params))
        this.#with.log.warn('request repeated with other parameters', { requestId, kind: before.kind });
    })();
    this.#running.set(requestId, running);
    try {
      await running;
    } finally {
      this.#running.delete(requestId);
    }
    return await this.#answers.wait(requestId, duplicate);
  }
}
