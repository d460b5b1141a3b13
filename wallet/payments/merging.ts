/**
 * Payments with `compound_first` (docs/wallet.md, Coin selection): rounds of merges, eight outputs into one, each round
 * after the previous one is final, and the payment itself once eight outputs or fewer are held. Cuts pass in between:
 * so the initial checks are repeated before each round and before the payment.
 */
import { fromHex, toHex } from '../../protocol/bytes.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Book } from '../state/book.ts';
import type { Journal } from '../state/journal.ts';
import {
  isFinal,
  type MergeProgress,
  type OperationRecord,
  type OwnedOutput,
  outputKey,
  type RequestRecord,
} from '../state/records.ts';
import type { WalletStore } from '../state/store.ts';
import { WalletError, type WalletErrorCode } from '../wallet-error.ts';
import type { Answers } from './answers.ts';
import type { Commitment } from './commitment.ts';
import { nextRound } from './compounding.ts';
import type { PayOrder, Planning } from './planning.ts';
import { type Ask, planWith } from './selection.ts';

export type MergingDependencies = {
  readonly book: Book;
  readonly store: WalletStore;
  readonly journal: Journal;
  readonly planning: Planning;
  readonly commitment: Commitment;
  readonly answers: Answers;
  /** Refuses an operation whose terms have changed. */
  readonly recheck: (operation: OperationRecord) => Promise<void>;
  readonly log: Logger;
};

type Wish = Omit<MergeProgress, 'held' | 'round'>;

/** The node is unavailable or behind, or the wallet is still reading: retried in the next round. */
const isPassing = ({ rpc, code }: WalletError): boolean =>
  rpc === -32001 || rpc === -32003 || code === 'payments_stopped';

export class Merging {
  readonly #with: MergingDependencies;
  readonly #continuing = new Map<string, Promise<void>>();

  constructor(dependencies: MergingDependencies) {
    this.#with = dependencies;
  }

  /** Restores requests of an earlier process: their outputs stay reserved. */
  async resume(): Promise<void> {
    const { book, store, commitment } = this.#with;
    for (const request of await store.mergingRequests()) {
      commitment.merging.set(request.requestId, request);
      book.reserve(request.merge?.held ?? [], request.requestId);
      for (const name of request.merge?.round ?? [])
        book.reserve([outputKey(name, 0), ...((await store.outgoing(name))?.inputs ?? [])], request.requestId);
    }
  }

  /** Merges that finished while the wallet was not running. */
  async continueAll(): Promise<void> {
    for (const requestId of [...this.#with.commitment.merging.keys()]) await this.#continue(requestId);
  }

  has(requestId: string): boolean {
    return this.#with.commitment.merging.has(requestId);
  }

  async start(request: RequestRecord, order: PayOrder, ask: Ask, held: readonly OwnedOutput[]): Promise<void> {
    const wish = {
      recipients: order.recipients,
      payloadHex: toHex(order.payload),
      subtractFee: order.subtractFee,
      feePerMass: ask.feePerMass,
      fromAddress: order.fromAddress,
      operation: order.operation,
    };
    await this.#round(request, wish, held);
  }

  /** A merge of this request is final or void. */
  settled(requestId: string): void {
    this.#continue(requestId).catch((error) =>
      this.#with.log.error('a merge could not continue', { requestId, error }),
    );
  }

  /** Signs the next round of merges, or the payment itself when eight outputs or fewer are held. */
  async #round(request: RequestRecord, wish: Wish, held: readonly OwnedOutput[]): Promise<void> {
    const { planning, commitment } = this.#with;
    const terms = { feePerMass: wish.feePerMass, profileOf: planning.profileOf };
    const round = nextRound(held, terms);
    if (round.length > 0) {
      const merged = new Set(round.flatMap((one) => one.inputs.map(({ key }) => key)));
      const rest = held.map(({ key }) => key).filter((key) => !merged.has(key));
      const drafts = round.map((one) => planning.moveDraft(one, planning.changeTo(wish.fromAddress)));
      return await commitment.commit(request, drafts, 'merge', { ...wish, held: rest });
    }
    const order = { ...wish, payload: fromHex(wish.payloadHex), fromAddress: wish.fromAddress };
    const plan = planWith(held, planning.askFor(order, wish.feePerMass));
    if (plan === undefined)
      return await this.#fail(request, held, 'insufficient_funds', 'the merged outputs do not cover it');
    await commitment.commit(request, [planning.payDraft(plan, order)], 'pay');
  }

  async #fail(
    request: RequestRecord,
    held: readonly OwnedOutput[],
    code: WalletErrorCode,
    message: string,
  ): Promise<void> {
    const { book, journal, commitment, answers } = this.#with;
    commitment.merging.delete(request.requestId);
    await journal.commit(
      { requests: [{ ...request, state: 'failed', merge: null, failure: { code, message } }] },
      true,
    );
    book.release(held.map(({ key }) => key));
    answers.changed();
  }

  /** Continues a merging request once every merge of its round is final. */
  #continue(requestId: string): Promise<void> {
    const before = this.#continuing.get(requestId) ?? Promise.resolve();
    const next = before.catch(() => undefined).then(() => this.#continueNow(requestId));
    this.#continuing.set(requestId, next);
    return next.finally(() => {
      if (this.#continuing.get(requestId) === next) this.#continuing.delete(requestId);
    });
  }

  async #continueNow(requestId: string): Promise<void> {
    const { book, store, journal, commitment } = this.#with;
    const request = commitment.merging.get(requestId);
    if (request === undefined || request.merge === null || book.meta.stopped !== null) return;
    await journal.settled();
    const keys = [...request.merge.held];
    let lost = false;
    for (const name of request.merge.round) {
      const record = book.open.get(name) ?? (await store.outgoing(name));
      if (record === undefined || !isFinal(record.state)) return;
      if (record.state === 'finalized') keys.push(outputKey(name, 0));
      else {
        // Expired: its inputs are unspent and stay with the request. Conflict: someone else has these keys.
        keys.push(...record.inputs);
        book.release([outputKey(name, 0)]);
        lost ||= record.reason === 'conflict';
      }
    }
    const heldNow = () => keys.flatMap((key) => book.outputs.get(key) ?? []);
    if (lost)
      return await this.#fail(request, heldNow(), 'merge_lost', 'another wallet with the same words spent an output');
    const { held: _, round: __, ...wish } = request.merge;
    const feePerMass = await this.#askAgain(wish);
    if (feePerMass === undefined) return;
    if (feePerMass instanceof WalletError)
      return await this.#fail(request, heldNow(), feePerMass.code, feePerMass.message);
    await this.#round({ ...request, feePerMass }, { ...wish, feePerMass }, heldNow());
  }

  /** The node's current fee, within the wallet's limit; a refusal; or undefined if not known yet. */
  async #askAgain({ operation }: Wish): Promise<bigint | WalletError | undefined> {
    const { planning, recheck } = this.#with;
    try {
      planning.feePerMass();
      if (operation !== undefined) await recheck(operation);
      return planning.feePerMass();
    } catch (error) {
      if (!(error instanceof WalletError)) throw error;
      return isPassing(error) ? undefined : error;
    }
  }
}
