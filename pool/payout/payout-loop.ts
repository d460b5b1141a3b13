/**
 * The payout loop: one round compares the books with the wallet, reserves due balances, submits reserved payouts, and
 * asks for the state of submitted ones. Payouts are numbered and sent one after another, and the wallet pays each
 * number once: a database replaced by an older copy asks for a number that is taken, and the lost payouts are found and
 * recorded before anything else is paid (pool/payout/reconciliation.ts). Unclear requests are repeated with the same
 * number; a recipient that the wallet refuses is set aside for a person to decide.
 */
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { payoutsPaused } from '../api/operator/payout-pause.ts';
import { fenced } from '../books/term.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { minimumInForce } from '../edits/edits.ts';
import { AUDIT_FAILED } from './payout-hold.ts';
import { type PayoutSeries, requestIdOf } from './payout-series.ts';
import {
  markFinalized,
  markRefused,
  markSubmitted,
  markSubmitting,
  markVoid,
  noteAsked,
  type OpenPayout,
  openPayouts,
  reservePayout,
  setAside,
  setAsideFailing,
} from './payout-states.ts';
import {
  type PayoutWallet,
  samePayment,
  samePaymentBut,
  type WalletAnswer,
  type WalletPayment,
  type WalletStatus,
} from './payout-wallet.ts';
import { Reconciliation } from './reconciliation.ts';

export type PayoutOptions = {
  readonly term: bigint;
  readonly series: PayoutSeries;
  /** From the options; an edit of the operator takes precedence. */
  readonly minimum: bigint;
  /** Maximum number of open payouts: limits the damage of a fault. */
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
  readonly now: SteadyClock;
  /** Row ids; not used outside the database. */
  readonly newId: () => string;
  /** Whether all known shares and cuts are in the books. */
  readonly isCaughtUp: () => Promise<boolean>;
  /**
   * Why accounts must not be paid, by account: their books are audited before each request to the wallet
   * (account-check.ts).
   */
  readonly failures?: (accountIds: readonly number[]) => Promise<ReadonlyMap<number, string>>;
  readonly onFinalized?: (payout: OpenPayout, height: number) => void;
};

/** `follow`: nothing is reserved or sent. `send`: reserved payouts are sent. `pay`: due balances are reserved, too. */
export type RoundMode = 'follow' | 'send' | 'pay';

export type RoundReport = {
  readonly reserved: number;
  readonly submitted: number;
  readonly finalized: number;
  /** No other account is due. */
  readonly isComplete: boolean;
};

/**
 * Result of one payout in a round: whether the next number may be assigned, and whether this one can be tried again at
 * once.
 */
type Step = 'sent' | 'again' | 'next' | 'stop';

export class PayoutLoop {
  readonly #options: PayoutOptions;
  readonly #dependencies: PayoutDependencies;
  readonly #reconciliation: Reconciliation;
  /** A payout needed more outputs than a transaction may spend: merge, however few there are. */
  #tooManyOutputs = false;
  /**
   * Whether books and wallet were compared since this loop began: a new loop begins with every term and after every
   * failure of the database.
   */
  #isCompared = false;

  constructor(options: PayoutOptions, dependencies: PayoutDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#reconciliation = new Reconciliation(options, dependencies);
  }

  #fenced<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return fenced(this.#dependencies.sql, this.#options.term, work);
  }

  async round(mode: RoundMode): Promise<RoundReport> {
    const { sql, wallet, log, isCaughtUp } = this.#dependencies;
    const open = await openPayouts(sql);
    const finalized = await this.#followSubmitted(open);
    const nothing = { reserved: 0, submitted: 0, finalized, isComplete: false };
    const status = await wallet.status();
    if (status.kind !== 'ok') {
      log.warn('the wallet is not ready', { reason: status.reason });
      return nothing;
    }
    const isToSend = mode !== 'follow' && open.some((payout) => this.#isToSend(payout, status.value));
    if (!this.#isCompared || mode === 'pay' || isToSend)
      this.#isCompared = await this.#reconciliation.run(status.value);
    // A payout of books that fell back would commit an earlier slice than those before it (books rule 21).
    if (!this.#isCompared || mode === 'follow' || !(await isCaughtUp())) return nothing;
    await this.#compound(status.value);
    const { reserved, isComplete } = mode === 'pay' ? await this.#reserveDue() : { reserved: 0, isComplete: false };
    return { reserved, submitted: await this.#sendAll(status.value), finalized, isComplete };
  }

  /**
   * Open, not waiting for a person, and not requested from a table that the wallet has lost (those are settled only by
   * time).
   */
  #isToSend({ state, needsPerson, requestTable }: OpenPayout, status: WalletStatus): boolean {
    if (needsPerson !== null) return false;
    return state === 'reserved' || (state === 'submitting' && requestTable === status.requestTable);
  }

  async #reserveDue(): Promise<{ reserved: number; isComplete: boolean }> {
    const { sql, newId, log } = this.#dependencies;
    const open = (await openPayouts(sql)).filter(({ needsPerson }) => needsPerson === null).length;
    for (let reserved = 0; ; reserved++) {
      if (open + reserved >= this.#options.maxOpen) return { reserved, isComplete: false };
      const id = newId();
      const made = await this.#fenced(async (transaction) => {
        const minimum = (await minimumInForce(transaction, this.#dependencies.now())) ?? this.#options.minimum;
        return reservePayout(transaction, id, { minimum });
      });
      if (made === undefined) return { reserved, isComplete: true };
      log.info('reserved a payout', { payout: id, recipients: made.recipients, atoms: made.total });
    }
  }

  /** One after another, unclear ones first: a number is assigned only when all before it are in the wallet's record. */
  async #sendAll(status: WalletStatus): Promise<number> {
    const { sql } = this.#dependencies;
    let submitted = 0;
    const tried = new Set<string>();
    for (;;) {
      // A round may take minutes, and who stops the payouts means now.
      if (await payoutsPaused(sql)) return submitted;
      const open = (await openPayouts(sql)).filter((payout) => this.#isToSend(payout, status));
      const next = open.find(({ state }) => state === 'submitting') ?? open.find(({ id }) => !tried.has(id));
      if (next === undefined) return submitted;
      tried.add(next.id);
      const step = await this.#submit(next, status);
      if (step === 'sent') submitted++;
      if (step === 'again') tried.delete(next.id);
      if (step === 'stop') return submitted;
    }
  }

  /** Undefined if the books of all recipients add up; else the result for the others. */
  async #refuseFailing(payout: OpenPayout): Promise<Step | undefined> {
    const { wallet, log, newId, failures } = this.#dependencies;
    const found = (await failures?.(payout.items.map(({ accountId }) => accountId))) ?? new Map<number, string>();
    if (found.size === 0) return undefined;
    if (payout.requestId !== null) {
      const { requestId } = payout;
      const listed = await wallet.payments(requestId);
      if (listed.kind !== 'ok') return 'stop';
      const recorded = listed.value.find((one) => one.requestId === requestId);
      if (recorded !== undefined) return this.#alreadySent(payout, recorded, found);
      await this.#fenced((transaction) =>
        markRefused(transaction, payout.id, 'the books of its recipients failed an audit'),
      );
    }
    const whys = new Map([...found].map(([account, why]) => [account, `${AUDIT_FAILED}${account} failed: ${why}`]));
    const isLeft = await this.#fenced((transaction) => setAsideFailing(transaction, payout, whys, newId));
    for (const { accountId, address } of payout.items)
      if (found.has(accountId))
        log.error('an account is not paid: its books fail the audit', {
          account: accountId,
          address,
          reason: found.get(accountId),
        });
    return isLeft ? 'again' : 'next';
  }

  /**
   * The payment is in the wallet's record, so the request is not repeated with the books' current values: an edit of a
   * failing account's row would make it a different payment, and all payouts would stop until a person had looked.
   * Undefined if the rest of it differs too.
   */
  async #alreadySent(
    payout: OpenPayout,
    { recipients, transactionId, fee }: WalletPayment,
    failing: ReadonlyMap<number, string>,
  ): Promise<Step | undefined> {
    const isSame = samePaymentBut(payout.items, recipients, ({ accountId }) => failing.has(accountId));
    if (transactionId === null || !isSame) return undefined;
    await this.#fenced((transaction) => markSubmitted(transaction, payout.id, transactionId, fee));
    this.#dependencies.log.info('a payout was submitted before', { payout: payout.id, transaction: transactionId });
    return 'sent';
  }

  async #submit(payout: OpenPayout, status: WalletStatus): Promise<Step> {
    const { wallet, log } = this.#dependencies;
    const refused = await this.#refuseFailing(payout);
    if (refused !== undefined) return refused;
    const { requestTable, indexedHeight: height } = status;
    if (payout.requestId !== null && !(await this.#noteRepetition(payout, payout.requestId, height))) return 'stop';
    const terms = { prefix: this.#options.series.payouts, requestTable, height };
    const { requestId, payloadText } =
      payout.requestId === null
        ? await this.#fenced((transaction) => markSubmitting(transaction, payout.id, terms))
        : { requestId: payout.requestId, payloadText: payout.payloadText };
    const answer = await wallet.sendMany(requestId, payout.items, payloadText);
    switch (answer.kind) {
      case 'ok': {
        const { transactionId, fee, recipients } = answer.value;
        if (!samePayment(recipients, payout.items)) {
          // The number was used for another payment, which the books have lost. They are compared before anything else
          // is sent.
          log.error('the wallet has paid others under this number', { payout: payout.id, requestId });
          this.#isCompared = false;
          return 'stop';
        }
        await this.#fenced((transaction) => markSubmitted(transaction, payout.id, transactionId, fee));
        log.info('submitted a payout', { payout: payout.id, transaction: transactionId });
        return 'sent';
      }
      case 'later': {
        log.warn('a payout is asked for again later', { payout: payout.id, reason: answer.reason });
        // What is said of a repetition (a token that was refused) says nothing about the first request.
        const isFree = answer.isUnused && payout.requestId === null;
        if (isFree) await this.#fenced((transaction) => markRefused(transaction, payout.id, answer.reason));
        return isFree ? 'next' : 'stop';
      }
      case 'unknown':
        return this.#unclear(payout, answer.transactionId, answer.reason);
      case 'refused':
        log.warn('the wallet refused a payout', { payout: payout.id, reason: answer.reason });
        this.#tooManyOutputs ||= answer.tooManyOutputs;
        await this.#fenced((transaction) => markRefused(transaction, payout.id, answer.reason));
        return 'next';
      case 'wrong':
        return this.#refusedRecipient(payout, requestId, answer);
    }
  }

  /**
   * A wallet that has no record of the request signs it now: from now on counts until when it can execute, if the wallet
   * forgets it (reconciliation.ts). False if the wallet does not say now.
   */
  async #noteRepetition({ id }: OpenPayout, requestId: string, height: number): Promise<boolean> {
    const listed = await this.#dependencies.wallet.payments(requestId);
    if (listed.kind !== 'ok') return false;
    if (!listed.value.some((one) => one.requestId === requestId))
      await this.#fenced((transaction) => noteAsked(transaction, id, height));
    return true;
  }

  /** The wallet has signed it and does not know whether the node has it, or the node refused it: the chain decides. */
  async #unclear(payout: OpenPayout, transactionId: string | null, reason: string): Promise<Step> {
    const { log } = this.#dependencies;
    log.warn('the state of a payout is unknown: it is asked for again', { payout: payout.id, reason });
    if (transactionId === null) return 'stop';
    await this.#fenced((transaction) => markSubmitted(transaction, payout.id, transactionId, null, reason));
    return 'sent';
  }

  async #refusedRecipient(
    payout: OpenPayout,
    requestId: string,
    { reason, recipient }: Extract<WalletAnswer<never>, { kind: 'wrong' }>,
  ): Promise<Step> {
    const { wallet, log, newId } = this.#dependencies;
    const listed = await wallet.payments(requestId);
    // A recorded payment is queried again in the next round; so is one that the wallet cannot answer about now.
    if (listed.kind !== 'ok' || listed.value.some((one) => one.requestId === requestId)) return 'stop';
    const item = recipient === null ? undefined : payout.items[recipient];
    const isLeft = await this.#fenced((transaction) =>
      setAside(transaction, payout, item?.accountId ?? null, reason, newId),
    );
    const alone = payout.items.length === 1 ? payout.items[0] : item;
    if (alone === undefined) log.warn('the wallet refuses a payout; its recipients are tried one by one', { reason });
    else log.error('a recipient is set aside until the operator decides', { address: alone.address, reason });
    return isLeft ? 'again' : 'next';
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
        await this.#fenced((transaction) => markFinalized(transaction, payout.id, fate.height, fate.fee));
        onFinalized?.(payout, fate.height);
        finalized++;
      } else {
        log.warn('a payout can never execute; its balances are back', { payout: payout.id, reason: fate.reason });
        await this.#fenced((transaction) => markVoid(transaction, payout.id, 'submitted', fate.reason));
      }
    }
    return finalized;
  }

  /**
   * With thousands of small rewards a day and 8 inputs per transaction, merging runs all the time, with its own budget.
   */
  async #compound(status: WalletStatus): Promise<void> {
    const { sql, newId } = this.#dependencies;
    const rows = await sql<{ id: string; request_id: string }[]>`select id, request_id from compoundings
      where state in ('submitting', 'submitted') order by created_at`;
    let open = 0;
    for (const { id, request_id } of rows) if (await this.#merge(id, request_id)) open++;
    if (status.outputs <= this.#options.compoundAbove && !this.#tooManyOutputs) return;
    this.#tooManyOutputs = false;
    for (; open < this.#options.compoundsPerRound; open++) {
      const id = newId();
      const requestId = await this.#fenced(async (transaction) => {
        const [row] = await transaction<
          { next: bigint }[]
        >`select coalesce(max(number), 0) + 1 as next from compoundings`;
        const number = Number((row as { next: bigint }).next);
        const name = requestIdOf(this.#options.series.merges, number);
        await transaction`insert into compoundings (id, state, number, request_id) values (${id}, 'submitting', ${number}, ${name})`;
        return name;
      });
      if (!(await this.#merge(id, requestId))) return;
    }
  }

  /** Requests a merge, or its result: the call is the same. True while it is pending. */
  async #merge(id: string, requestId: string): Promise<boolean> {
    const answer = await this.#dependencies.wallet.compound(requestId);
    if (answer.kind === 'unknown' || (answer.kind === 'later' && !answer.isUnused)) return true;
    if (answer.kind !== 'ok') {
      // Refused before anything was signed: the id was never used, and nothing needs to be stored.
      await this.#fenced(
        (transaction) => transaction`delete from compoundings where id = ${id} and state = 'submitting'`,
      );
      return answer.kind === 'later';
    }
    const state = answer.value.state === 'open' ? 'submitted' : answer.value.state;
    await this.#fenced(
      (transaction) =>
        transaction`update compoundings set state = ${state}, fee = ${answer.value.fee} where id = ${id}`,
    );
    return state === 'submitted';
  }
}
