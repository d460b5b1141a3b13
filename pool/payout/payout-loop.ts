/**
 * Paying out: one round reserves what is due, submits what is reserved, and asks for the fate of what is submitted.
 * Anything unclear is asked again with the same request id; nothing is ever sent a second time under another. A wallet
 * that forgot its request ids (restored from its words) stops the payouts it might have made before: a person looks.
 */
import type { Logger } from '../../runtime/log.ts';
import { fenced } from '../books/term.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import {
  callForPerson,
  markFinalized,
  markRefused,
  markSubmitted,
  markSubmitting,
  markVoid,
  type OpenPayout,
  openPayouts,
  reservePayout,
} from './payout-states.ts';
import type { PayoutWallet, WalletStatus } from './payout-wallet.ts';

export type PayoutOptions = {
  readonly term: bigint;
  readonly minimum: bigint;
  /** Payouts that may be open at once: bounds what a fault could touch. */
  readonly maxOpen: number;
  /** Outputs in the hot wallet above which they are merged, and merges per round. */
  readonly compoundAbove: number;
  readonly compoundsPerRound: number;
};

export const PAYOUT_DEFAULTS = { maxOpen: 20, compoundAbove: 64, compoundsPerRound: 4 } as const;

export type PayoutDependencies = {
  readonly sql: Sql;
  readonly wallet: PayoutWallet;
  readonly log: Logger;
  readonly newId: () => string;
  readonly onFinalized?: (payout: OpenPayout, height: number) => void;
};

export type RoundReport = { readonly reserved: number; readonly submitted: number; readonly finalized: number };

export class PayoutLoop {
  readonly #options: PayoutOptions;
  readonly #dependencies: PayoutDependencies;
  /** A payout needed more outputs than a transaction may spend: merge, however few there are. */
  #tooManyOutputs = false;

  constructor(options: PayoutOptions, dependencies: PayoutDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  #fenced<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return fenced(this.#dependencies.sql, this.#options.term, work);
  }

  /** One round. `reserve` is false while payouts are paused or the interval is not over: what is open is still followed. */
  async round(reserve: boolean): Promise<RoundReport> {
    const { sql, wallet, log } = this.#dependencies;
    const finalized = await this.#followSubmitted(await openPayouts(sql));
    const status = await wallet.status();
    if (status.kind !== 'ok') {
      log.warn('the wallet is not ready', { reason: status.reason });
      return { reserved: 0, submitted: 0, finalized };
    }
    await this.#compound(status.value);
    const reserved = reserve ? await this.#reserveDue() : 0;
    let submitted = 0;
    for (const payout of await openPayouts(sql))
      if (payout.state !== 'submitted' && payout.needsPerson === null && (await this.#submit(payout, status.value)))
        submitted++;
    return { reserved, submitted, finalized };
  }

  async #reserveDue(): Promise<number> {
    const { sql, newId, log } = this.#dependencies;
    let reserved = 0;
    for (let open = (await openPayouts(sql)).length; open < this.#options.maxOpen; open++) {
      const id = newId();
      const made = await this.#fenced((transaction) =>
        reservePayout(transaction, id, { minimum: this.#options.minimum }),
      );
      if (made === undefined) break;
      log.info('reserved a payout', { payout: id, recipients: made.recipients, atoms: made.total });
      reserved++;
    }
    return reserved;
  }

  /** True when the wallet took it. */
  async #submit(payout: OpenPayout, status: WalletStatus): Promise<boolean> {
    const { wallet, log } = this.#dependencies;
    if (payout.state === 'reserved')
      await this.#fenced((transaction) => markSubmitting(transaction, payout.id, status.requestTable));
    else if (payout.requestTable !== status.requestTable) {
      await this.#person(payout, 'the wallet has another request table: it may have paid this and forgotten');
      return false;
    }
    const answer = await wallet.sendMany(payout.id, payout.items);
    switch (answer.kind) {
      case 'ok':
        await this.#fenced((transaction) =>
          markSubmitted(transaction, payout.id, answer.value.transactionId, answer.value.fee),
        );
        log.info('submitted a payout', { payout: payout.id, transaction: answer.value.transactionId });
        return true;
      case 'later':
      case 'unknown':
        log.warn('a payout is asked for again later', { payout: payout.id, reason: answer.reason });
        return false;
      case 'refused':
        log.warn('the wallet refused a payout', { payout: payout.id, reason: answer.reason });
        this.#tooManyOutputs ||= answer.tooManyOutputs;
        await this.#fenced((transaction) => markRefused(transaction, payout.id, answer.reason));
        return false;
      case 'wrong':
        await this.#person(payout, answer.reason);
        return false;
    }
  }

  async #person(payout: OpenPayout, why: string): Promise<void> {
    this.#dependencies.log.error('a payout needs a person', { payout: payout.id, why });
    await this.#fenced((transaction) => callForPerson(transaction, payout.id, why));
  }

  async #followSubmitted(open: readonly OpenPayout[]): Promise<number> {
    const { wallet, log, onFinalized } = this.#dependencies;
    let finalized = 0;
    for (const payout of open) {
      if (payout.state !== 'submitted' || payout.transactionId === null) continue;
      const answer = await wallet.fate(payout.transactionId);
      if (answer.kind !== 'ok' || answer.value.state === 'open') continue;
      const fate = answer.value;
      if (fate.state === 'finalized') {
        await this.#fenced((transaction) => markFinalized(transaction, payout.id, fate.height));
        onFinalized?.(payout, fate.height);
        finalized++;
      } else {
        log.warn('a payout can never execute; its balances are back', { payout: payout.id, reason: fate.reason });
        await this.#fenced((transaction) => markVoid(transaction, payout.id, 'submitted', fate.reason));
      }
    }
    return finalized;
  }

  /** Thousands of small rewards a day and 8 inputs a transaction: merging is a steady job with a budget of its own. */
  async #compound(status: WalletStatus): Promise<void> {
    const { sql, newId } = this.#dependencies;
    const rows = await sql<{ id: string }[]>`select id from compoundings where state in ('submitting', 'submitted')
      order by created_at`;
    let open = 0;
    for (const { id } of rows) if (await this.#merge(id)) open++;
    if (status.outputs <= this.#options.compoundAbove && !this.#tooManyOutputs) return;
    this.#tooManyOutputs = false;
    for (; open < this.#options.compoundsPerRound; open++) {
      const id = newId();
      await this.#fenced(
        (transaction) => transaction`insert into compoundings (id, state) values (${id}, 'submitting')`,
      );
      if (!(await this.#merge(id))) return;
    }
  }

  /** Asks for a merge, or how it went: the same call. True while it is under way. */
  async #merge(id: string): Promise<boolean> {
    const answer = await this.#dependencies.wallet.compound(id);
    if (answer.kind === 'later' || answer.kind === 'unknown') return true;
    if (answer.kind !== 'ok') {
      // Refused before anything was signed: the id was never used, and nothing needs to be remembered of it.
      await this.#fenced(
        (transaction) => transaction`delete from compoundings where id = ${id} and state = 'submitting'`,
      );
      return false;
    }
    const state = answer.value.state === 'open' ? 'submitted' : answer.value.state;
    await this.#fenced(
      (transaction) =>
        transaction`update compoundings set state = ${state}, fee = ${answer.value.fee} where id = ${id}`,
    );
    return state === 'submitted';
  }
}
