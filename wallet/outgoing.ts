/**
 * Payments (docs/wallet.md, Payments). Order of one payment: look up the request id; choose and reserve outputs; sign;
 * write request, signed transaction and reservation as one durable step; only then send. Wherever a crash falls, the
 * next start finds either nothing, and the id is free, or the signed transaction, and sends exactly that.
 */
import { createHash } from 'node:crypto';
import { formatCoins } from '../protocol/amount.ts';
import { fromHex, toHex } from '../protocol/bytes.ts';
import type { NetworkName } from '../protocol/network.ts';
import type { Logger } from '../runtime/log.ts';
import { changeAddress } from './address-book.ts';
import type { Book } from './book.ts';
import { type Draft, signDraft } from './build.ts';
import { gather, type Merge, merges, nextRound } from './compounding.ts';
import type { Follower } from './follower.ts';
import type { Journal } from './journal.ts';
import type { Keyring } from './keyring.ts';
import {
  isFinal,
  type MergeProgress,
  type OutgoingRecord,
  type OwnedOutput,
  outputKey,
  type Recipient,
  type RequestKind,
  type RequestRecord,
} from './records.ts';
import { type Ask, type Plan, type Profile, planWith, select } from './selection.ts';
import type { WalletStore } from './store.ts';
import type { Submitter } from './submitter.ts';
import { WalletError, type WalletErrorCode } from './wallet-error.ts';

/** Transactions one sweep or compound call makes; the rest is for the next call. */
export const MAX_MOVES = 64;
/** Further behind than this the wallet does not know what it owns. */
const MAX_LAG = 16;

export type OutgoingOptions = {
  readonly network: NetworkName;
  /** How many cuts a transaction stays valid: after that its fate is known. */
  readonly validityCuts: number;
  /** A node that asks for more per mass is not believed. */
  readonly maxFeePerMass: bigint;
  /** How long a call waits for the node before it answers that the outcome is unknown. */
  readonly answerMillis: number;
};

export type OutgoingDependencies = {
  readonly book: Book;
  readonly store: WalletStore;
  readonly journal: Journal;
  readonly keyring: Keyring;
  readonly follower: Follower;
  readonly submitter: Submitter;
  readonly log: Logger;
  readonly now: () => number;
};

export type PayOrder = {
  readonly requestId: string;
  readonly kind: 'payment' | 'burn';
  readonly recipients: readonly Recipient[];
  readonly payload: Uint8Array;
  readonly subtractFee: boolean;
  readonly compoundFirst: boolean;
  readonly params: unknown;
};

/** Moves whole outputs to one address. */
export type MoveOrder = {
  readonly requestId: string;
  readonly kind: Exclude<RequestKind, 'payment' | 'burn'>;
  readonly to: string;
  readonly outputs: () => readonly OwnedOutput[];
  /** A group of one is worth moving to another address, but not into itself. */
  readonly single: boolean;
  readonly most: number;
  readonly params: unknown;
};

export type Quote = {
  readonly recipients: readonly Recipient[];
  readonly fee: bigint;
  readonly feePerMass: bigint;
  readonly transactions: number;
};

/** A request with the transactions it made, as they stand now. */
export type Outcome = {
  readonly request: RequestRecord;
  readonly transactions: readonly OutgoingRecord[];
  readonly duplicate: boolean;
};

export const digestOf = (params: unknown): string =>
  createHash('sha256').update(JSON.stringify(params)).digest('hex').slice(0, 32);

const empty = new Uint8Array(0);

export class Outgoing {
  readonly #options: OutgoingOptions;
  readonly #with: OutgoingDependencies;
  readonly #running = new Map<string, Promise<void>>();
  readonly #merging = new Map<string, RequestRecord>();
  readonly #continuing = new Map<string, Promise<void>>();
  readonly #watchers = new Set<() => void>();

  constructor(options: OutgoingOptions, dependencies: OutgoingDependencies) {
    this.#options = options;
    this.#with = dependencies;
  }

  /** Takes up what an earlier process left: reservations first, before any call is answered. */
  async resume(): Promise<void> {
    const { book, store } = this.#with;
    for (const record of book.open.values()) this.#reserve(record);
    for (const request of await store.mergingRequests()) {
      this.#merging.set(request.requestId, request);
      book.reserve(request.merge?.held ?? [], request.requestId);
      for (const name of request.merge?.round ?? [])
        book.reserve([outputKey(name, 0), ...((await store.outgoing(name))?.inputs ?? [])], request.requestId);
    }
  }

  /** Merges that finished while nobody was there. */
  async continueAll(): Promise<void> {
    for (const requestId of [...this.#merging.keys()]) await this.#continue(requestId);
  }

  get mergingRequests(): IterableIterator<RequestRecord> {
    return this.#merging.values();
  }

  async pay(order: PayOrder): Promise<Outcome> {
    return await this.#once(order.requestId, order.params, async () => {
      const ask = this.#ask(order);
      const plan = this.#plan(ask, order.compoundFirst);
      const request = this.#newRequest(order.requestId, order.kind, order.recipients, ask.feePerMass, order.params);
      if ('held' in plan) return await this.#startMerging(request, order, ask, plan.held);
      await this.#signAndCommit(request, [this.#payDraft(plan, order.recipients, order.payload)], 'pay');
    });
  }

  async move(order: MoveOrder): Promise<Outcome> {
    return await this.#once(order.requestId, order.params, async () => {
      const { found, left, feePerMass } = this.#moves(order);
      const amount = found.reduce((total, one) => total + one.amount, 0n);
      const request = this.#newRequest(
        order.requestId,
        order.kind,
        [{ to: order.to, amount }],
        feePerMass,
        order.params,
      );
      const drafts = found.map((one) => this.#moveDraft(one, order.to));
      await this.#signAndCommit({ ...request, remainingOutputs: left }, drafts, 'pay');
    });
  }

  /** What a payment would cost now. Nothing is reserved or kept. */
  quotePay(order: PayOrder): Quote {
    const ask = this.#ask(order);
    const plan = this.#plan(ask, order.compoundFirst);
    const { feePerMass } = ask;
    if (!('held' in plan)) {
      const recipients = order.recipients.map(({ to }, i) => ({ to, amount: plan.amounts[i] as bigint }));
      return { recipients, fee: plan.fee, feePerMass, transactions: 1 };
    }
    const round = nextRound(plan.held, ask);
    const fee = round.reduce((total, one) => total + one.fee, 0n);
    return { recipients: order.recipients, fee, feePerMass, transactions: round.length + 1 };
  }

  quoteMove(order: MoveOrder): Quote {
    const { found, feePerMass } = this.#moves(order);
    const amount = found.reduce((total, one) => total + one.amount, 0n);
    const fee = found.reduce((total, one) => total + one.fee, 0n);
    return { recipients: [{ to: order.to, amount }], fee, feePerMass, transactions: found.length };
  }

  /** What became of a request id, if it was ever used. */
  async outcome(requestId: string, duplicate: boolean): Promise<Outcome | undefined> {
    const { store, book } = this.#with;
    const request = book.recent.get(requestId) ?? (await store.request(requestId));
    if (request === undefined) return undefined;
    const transactions: OutgoingRecord[] = [];
    for (const name of request.transactions) {
      const record = book.open.get(name) ?? (await store.outgoing(name));
      if (record !== undefined) transactions.push(record);
    }
    return { request, transactions, duplicate };
  }

  /** Called by the follower for every cut, right after it was applied: frees what void transactions held. */
  cutApplied(outgoing: readonly OutgoingRecord[]): void {
    for (const record of outgoing) {
      const merging = record.purpose === 'merge' && this.#merging.has(record.requestId);
      if (record.state === 'void' && !merging)
        this.#with.book.release(record.inputs.filter((key) => this.#with.book.outputs.has(key)));
      if (merging) void this.#continue(record.requestId).catch((error) => this.#complain(record.requestId, error));
    }
    this.changed();
  }

  /** Something moved: whoever waits for an answer looks again. */
  changed(): void {
    for (const look of [...this.#watchers]) look();
  }

  #complain(requestId: string, error: unknown): void {
    this.#with.log.error('a merge could not go on', { requestId, error });
  }

  /** The guard of every outgoing call: a wallet that does not know what it owns must not pay. */
  #feePerMass(): bigint {
    const { follower, book } = this.#with;
    const { trouble, synced, behindBy, manifest, finalizedHeight } = follower.node;
    if (trouble !== null) throw trouble;
    if (follower.rescanning) throw new WalletError('wallet_busy', 'the history is being read again');
    if (manifest === null || !synced)
      throw new WalletError('node_not_synced', 'the node is not synchronized yet', { behind_by: behindBy });
    if (finalizedHeight - book.meta.indexedHeight > MAX_LAG) throw this.#behind();
    const feePerMass = BigInt(manifest.min_fee_per_mass);
    if (feePerMass > this.#options.maxFeePerMass)
      throw new WalletError('fee_too_high', `the node asks for ${feePerMass} atoms per mass`, {
        fee_per_mass: feePerMass.toString(),
        max_fee_per_mass: this.#options.maxFeePerMass.toString(),
      });
    return feePerMass;
  }

  #behind(): WalletError {
    return new WalletError('wallet_behind', 'the wallet is still reading finalized cuts', {
      indexed_height: this.#with.book.meta.indexedHeight,
      finalized_height: this.#with.follower.node.finalizedHeight,
    });
  }

  #profileOf = (output: OwnedOutput): Profile =>
    this.#with.book.address(output.address)?.registered === true ? 'referenced' : 'inline';

  #ask(order: PayOrder): Ask {
    return {
      amounts: order.recipients.map(({ amount }) => amount),
      payloadBytes: order.payload.length,
      feePerMass: this.#feePerMass(),
      subtractFee: order.subtractFee,
      profileOf: this.#profileOf,
    };
  }

  #plan(ask: Ask, compoundFirst: boolean): Plan | { held: readonly OwnedOutput[] } {
    const { book } = this.#with;
    const found = select(book.available, ask);
    if (!('refusal' in found)) return found;
    if (found.refusal === 'amount_below_fee')
      throw new WalletError('amount_below_fee', 'the fee is larger than an amount it is taken from');
    const needed = found.needed;
    // What the newest cuts brought may be enough: nobody is told that there is too little before they are read.
    if (!this.#with.follower.caughtUp) throw this.#behind();
    // Change and merged outputs on their way come back soon: then the same call will do.
    const inFlight = (): boolean => this.#returning() > 0n && book.available.total + this.#returning() >= needed;
    if (found.refusal === 'too_many_outputs') {
      if (compoundFirst) {
        const held = gather(book.available, ask);
        if (!('needed' in held)) return { held };
      }
      if (inFlight()) throw new WalletError('funds_in_flight', 'other payments hold the outputs this one needs');
      throw new WalletError(
        'too_many_outputs',
        'the payment needs more than 8 outputs: use compound_first or compound',
        {
          needed: formatCoins(needed),
          reachable: formatCoins(found.reachable),
        },
      );
    }
    if (inFlight()) throw new WalletError('funds_in_flight', 'other payments hold the outputs this one needs');
    throw new WalletError('insufficient_funds', 'not enough funds', {
      needed: formatCoins(needed),
      spendable: formatCoins(book.available.total),
    });
  }

  /** What open transactions will give back to this wallet once they are final. */
  #returning(): bigint {
    const { book } = this.#with;
    let total = 0n;
    for (const { change, recipients } of book.open.values()) {
      total += change;
      for (const { to, amount } of recipients) if (book.address(to) !== undefined) total += amount;
    }
    return total;
  }

  #moves(order: MoveOrder): { found: readonly Merge[]; left: number; feePerMass: bigint } {
    const feePerMass = this.#feePerMass();
    const terms = { feePerMass, profileOf: this.#profileOf };
    const outputs = order.outputs();
    const found = merges(outputs, terms, order.most, order.single ? 1 : 2);
    if (found.length === 0 && !this.#with.follower.caughtUp) throw this.#behind();
    if (found.length === 0) throw new WalletError('nothing_to_move', 'there is no output worth moving');
    const taken = found.reduce((total, one) => total + one.inputs.length, 0);
    return { found, left: outputs.length - taken, feePerMass };
  }

  #heights(): Pick<Draft, 'validFromHeight' | 'validUntilHeight'> {
    const validFromHeight = this.#with.book.meta.indexedHeight;
    return { validFromHeight, validUntilHeight: validFromHeight + this.#options.validityCuts };
  }

  #payDraft(plan: Plan, recipients: readonly Recipient[], payload: Uint8Array): Draft {
    return {
      inputs: plan.inputs,
      profiles: plan.profiles,
      recipients: recipients.map(({ to }, i) => ({ to, amount: plan.amounts[i] as bigint })),
      change: plan.change,
      changeAddress: changeAddress(this.#with.book),
      payload,
      ...this.#heights(),
    };
  }

  #moveDraft(merge: Merge, to: string): Draft {
    return {
      inputs: merge.inputs,
      profiles: merge.profiles,
      recipients: [{ to, amount: merge.amount }],
      change: 0n,
      changeAddress: to,
      payload: empty,
      ...this.#heights(),
    };
  }

  #newRequest(
    requestId: string,
    kind: RequestKind,
    recipients: readonly Recipient[],
    feePerMass: bigint,
    params: unknown,
  ): RequestRecord {
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
    };
  }

  /** One run per request id at a time, and one in all: repetitions join or find what is on disk. */
  async #once(requestId: string, params: unknown, run: () => Promise<void>): Promise<Outcome> {
    const joined = this.#running.get(requestId);
    if (joined !== undefined) {
      await joined;
      return await this.#await(requestId, true);
    }
    let duplicate = true;
    const running = (async () => {
      const before = this.#with.book.recent.get(requestId) ?? (await this.#with.store.request(requestId));
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
    return await this.#await(requestId, duplicate);
  }

  #reserve(record: Pick<OutgoingRecord, 'requestId' | 'purpose' | 'inputs' | 'transaction'>): void {
    this.#with.book.reserve(record.inputs, record.requestId);
    // The output of a merge belongs to its request from the moment it exists.
    if (record.purpose === 'merge') this.#with.book.reserve([outputKey(record.transaction, 0)], record.requestId);
  }

  /** The durable step. Between choosing outputs and reserving them nothing may wait. */
  async #signAndCommit(
    request: RequestRecord,
    drafts: readonly Draft[],
    purpose: OutgoingRecord['purpose'],
    merge: Omit<MergeProgress, 'round'> | null = null,
  ): Promise<void> {
    const { book, journal, keyring, submitter, now } = this.#with;
    const { requestId } = request;
    const inputs = drafts.flatMap((draft) => draft.inputs.map(({ key }) => key));
    book.reserve([...inputs, ...(merge?.held ?? [])], requestId);
    let records: readonly OutgoingRecord[];
    try {
      const chainId = fromHex(book.meta.chainId as string);
      const signed = await Promise.all(
        drafts.map((draft) =>
          signDraft(draft, { network: this.#options.network, chainId }, (address) => {
            const record = book.address(address);
            if (record === undefined) throw new Error(`no key for ${address}`);
            return keyring.key(record);
          }),
        ),
      );
      records = drafts.map((draft, i): OutgoingRecord => {
        const { transaction, wire } = signed[i] as (typeof signed)[number];
        const spent = draft.inputs.reduce((total, input) => total + input.amount, 0n);
        const made = draft.recipients.reduce((total, one) => total + one.amount, 0n);
        return {
          transaction,
          requestId,
          purpose,
          state: 'signed',
          wireHex: Buffer.from(wire.buffer).toString('hex'),
          inputs: draft.inputs.map(({ key }) => key),
          recipients: draft.recipients,
          change: draft.change,
          fee: spent - made - draft.change,
          validUntilHeight: draft.validUntilHeight,
          createdMillis: now(),
          finalHeight: null,
          reason: null,
        };
      });
    } catch (error) {
      if (!this.#merging.has(requestId)) book.release([...inputs, ...(merge?.held ?? [])]);
      throw error;
    }
    const fee = records.reduce((total, record) => total + record.fee, request.fee);
    const last = drafts.at(-1);
    const names = records.map(({ transaction }) => transaction);
    const written: RequestRecord = {
      ...request,
      fee,
      transactions: [...request.transactions, ...names],
      recipients: purpose === 'pay' && drafts.length === 1 && last !== undefined ? last.recipients : request.recipients,
      state: purpose === 'merge' ? 'merging' : 'sent',
      merge: merge === null ? null : { ...merge, round: names },
    };
    for (const record of records) this.#reserve(record);
    if (purpose === 'merge') this.#merging.set(requestId, written);
    else this.#merging.delete(requestId);
    await journal.commit({ requests: [written], outgoing: records }, true);
    for (const name of names)
      submitter.send(name, true).then(
        () => this.changed(),
        (error) => this.#with.log.error('submission failed', { transaction: name, error }),
      );
  }

  async #startMerging(request: RequestRecord, order: PayOrder, ask: Ask, held: readonly OwnedOutput[]): Promise<void> {
    const progress = {
      recipients: order.recipients,
      payloadHex: toHex(order.payload),
      subtractFee: order.subtractFee,
      feePerMass: ask.feePerMass,
    };
    await this.#mergeRound(request, progress, held);
  }

  /** Signs the next round of merges, or the payment itself when eight outputs or fewer are held. */
  async #mergeRound(
    request: RequestRecord,
    progress: Omit<MergeProgress, 'held' | 'round'>,
    held: readonly OwnedOutput[],
  ): Promise<void> {
    const { book } = this.#with;
    const terms = { feePerMass: progress.feePerMass, profileOf: this.#profileOf };
    const round = nextRound(held, terms);
    if (round.length > 0) {
      const merged = new Set(round.flatMap((one) => one.inputs.map(({ key }) => key)));
      const rest = held.map(({ key }) => key).filter((key) => !merged.has(key));
      const drafts = round.map((one) => this.#moveDraft(one, changeAddress(book)));
      return await this.#signAndCommit(request, drafts, 'merge', { ...progress, held: rest });
    }
    const payload = fromHex(progress.payloadHex);
    const ask: Ask = {
      ...terms,
      amounts: progress.recipients.map(({ amount }) => amount),
      payloadBytes: payload.length,
      subtractFee: progress.subtractFee,
    };
    const plan = planWith(held, ask);
    if (plan === undefined)
      return await this.#fail(request, held, 'insufficient_funds', 'the merged outputs do not cover it');
    await this.#signAndCommit(request, [this.#payDraft(plan, progress.recipients, payload)], 'pay');
  }

  async #fail(
    request: RequestRecord,
    held: readonly OwnedOutput[],
    code: WalletErrorCode,
    message: string,
  ): Promise<void> {
    const { book, journal } = this.#with;
    this.#merging.delete(request.requestId);
    await journal.commit(
      { requests: [{ ...request, state: 'failed', merge: null, failure: { code, message } }] },
      true,
    );
    book.release(held.map(({ key }) => key));
    this.changed();
  }

  /** Goes on with a merging request once the fate of every merge of its round is final. */
  #continue(requestId: string): Promise<void> {
    const before = this.#continuing.get(requestId) ?? Promise.resolve();
    const next = before.catch(() => undefined).then(() => this.#continueNow(requestId));
    this.#continuing.set(requestId, next);
    return next.finally(() => {
      if (this.#continuing.get(requestId) === next) this.#continuing.delete(requestId);
    });
  }

  async #continueNow(requestId: string): Promise<void> {
    const { book, store, journal } = this.#with;
    const request = this.#merging.get(requestId);
    if (request === undefined || request.merge === null) return;
    await journal.settled();
    const keys = [...request.merge.held];
    let lost = false;
    for (const name of request.merge.round) {
      const record = book.open.get(name) ?? (await store.outgoing(name));
      if (record === undefined || !isFinal(record.state)) return;
      if (record.state === 'finalized') keys.push(outputKey(name, 0));
      else {
        // Expired: its inputs are whole and stay with the request. Conflict: somebody else has these keys.
        keys.push(...record.inputs);
        book.release([outputKey(name, 0)]);
        lost ||= record.reason === 'conflict';
      }
    }
    const held = keys.flatMap((key) => book.outputs.get(key) ?? []);
    if (lost)
      return await this.#fail(request, held, 'merge_lost', 'another wallet with the same words spent an output');
    const { recipients, payloadHex, subtractFee, feePerMass } = request.merge;
    await this.#mergeRound(request, { recipients, payloadHex, subtractFee, feePerMass }, held);
  }

  /** Waits until the request has an answer, or says that the outcome is not known yet. */
  async #await(requestId: string, duplicate: boolean): Promise<Outcome> {
    const deadline = this.#with.now() + this.#options.answerMillis;
    for (;;) {
      const changed = Promise.withResolvers<void>();
      this.#watchers.add(changed.resolve);
      const timer = setTimeout(changed.resolve, Math.max(0, deadline - this.#with.now()));
      try {
        const outcome = await this.outcome(requestId, duplicate);
        if (outcome === undefined) throw new Error('a request vanished');
        if (this.#answered(outcome)) return outcome;
        if (this.#with.now() >= deadline) {
          const merging = outcome.request.state === 'merging';
          throw new WalletError(
            'outcome_unknown',
            merging
              ? 'outputs are being merged; the payment follows'
              : 'the node has not confirmed that it has the transaction',
            { request_id: requestId, transaction: outcome.transactions.at(-1)?.transaction ?? null },
          );
        }
        await changed.promise;
      } finally {
        clearTimeout(timer);
        this.#watchers.delete(changed.resolve);
      }
    }
  }

  #answered({ request, transactions }: Outcome): boolean {
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
}
