/**
 * Compares the books with the wallet before anything is reserved or sent, and repairs the books where the wallet's
 * record is unambiguous (books rule 16). Otherwise payouts are held and the reason is published: `svc-pool
 * repair-payouts` shows the differences and lets a person decide.
 */
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { fenced } from '../books/term.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { bookedPayouts, bookLost, type LostPayment, type RepairTerms, UncoveredError } from './books-repair.ts';
import { holdPayouts, payoutsHeld } from './payout-hold.ts';
import type { PayoutSeries } from './payout-series.ts';
import { requestIdOf } from './payout-series.ts';
import { markSubmitted, markVoid, type OpenPayout, openPayouts } from './payout-states.ts';
import { type ChainPayment, type PayoutWallet, samePayment, type WalletStatus } from './payout-wallet.ts';
import { type Comparison, compareWithWallet } from './witness.ts';

const TABLE = 'payout_request_table';
const HEIGHT = 'payout_checked_height';
/** The longest validity that the wallet ever had: what it signed with it may still execute. */
const VALIDITY = 'payout_validity_cuts';
/** A request table that is not that of the last agreement, and the height at which it was first seen. */
const OTHER = 'payout_other_table';
/** Settled payouts that are compared again where the wallet has the same request table. */
const LOOK_BACK = 50;
/** Payouts that are compared at once: a page of the wallet, and a moment of the accountant's. */
const AT_ONCE = 1_000;
/**
 * A payment may be signed so long after the height was recorded, which is that of the round's beginning: 20 payouts of 20
 * seconds each are 160 cuts.
 */
const SLACK_CUTS = 256;
const HELD_AGAIN_MILLIS = 300_000;

export const UNREAD_REMEDY =
  'whom some of them pay is not known, because the wallet read them from a node that has deleted their cuts: give it a node that has them, and rescan';

export type ReconciliationOptions = { readonly term: bigint; readonly series: PayoutSeries };

export type ReconciliationDependencies = {
  readonly sql: Sql;
  readonly wallet: PayoutWallet;
  readonly log: Logger;
  readonly now: SteadyClock;
  /** Whether all known shares and cuts are in the books. */
  readonly isCaughtUp: () => Promise<boolean>;
  /** Why accounts must not be paid (account-check.ts). */
  readonly failures?: (accountIds: readonly number[]) => Promise<ReadonlyMap<number, string>>;
};

type Agreement = { readonly table: string | undefined; readonly height: number; readonly validityCuts: number };

/** Position of the books when they last agreed with the wallet. */
export async function lastAgreement(sql: Sql | Transaction): Promise<Agreement> {
  const rows = await sql<{ name: string; value: string }[]>`select name, value from settings
    where name in (${TABLE}, ${HEIGHT}, ${VALIDITY})`;
  const value = (name: string) => rows.find((row) => row.name === name)?.value;
  return { table: value(TABLE), height: Number(value(HEIGHT) ?? 0), validityCuts: Number(value(VALIDITY) ?? 0) };
}

type Agreed = Pick<WalletStatus, 'requestTable' | 'indexedHeight' | 'validityCuts'>;

export async function noteAgreement(transaction: Transaction, status: Agreed): Promise<void> {
  const { requestTable, indexedHeight, validityCuts } = status;
  const longest = Math.max(validityCuts, (await lastAgreement(transaction)).validityCuts);
  for (const [name, value] of [
    [TABLE, requestTable],
    [HEIGHT, String(indexedHeight)],
    [VALIDITY, String(longest)],
  ] as const)
    await transaction`insert into settings values (${name}, ${value})
      on conflict (name) do update set value = excluded.value where settings.value <> excluded.value`;
  await transaction`delete from settings where name = ${OTHER}`;
}

/**
 * Until when no balance is paid again, because the wallet has another request table than at the last agreement: what it
 * signed with the one before may still execute, and books that fell back together with it know nothing of that. It was
 * signed before the new table was first seen. Undefined once that is over, and while the table is the same. Expects a
 * wallet that has read the whole chain.
 */
export async function unsureThrough(
  sql: Sql | Transaction,
  status: WalletStatus,
  { isNoted = true } = {},
): Promise<number | undefined> {
  const { table, height, validityCuts } = await lastAgreement(sql);
  const { requestTable, indexedHeight } = status;
  if (table === undefined || table === requestTable) return undefined;
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${OTHER}`;
  const [of, at] = row?.value.split(' ') ?? [];
  const seen = of === requestTable ? Number(at) : Math.max(height, indexedHeight);
  if (isNoted)
    await sql`insert into settings values (${OTHER}, ${`${requestTable} ${seen}`})
    on conflict (name) do update set value = excluded.value where settings.value <> excluded.value`;
  const through = seen + Math.max(validityCuts, status.validityCuts) + SLACK_CUTS;
  return indexedHeight > through ? undefined : through;
}

export const unsureText = (through: number): string =>
  `payouts go on after height ${through}: the wallet has another request table than before, and what it signed with that one may execute until then`;

/** Up to which number everything was settled and the same, in the books and the request table that `of` names. */
export type Progress = { of: string; through: number };

/**
 * Undefined if the wallet does not answer now. Who holds payouts compares again and again: with `progress` it goes on where
 * everything below was settled and the same, and ends at the first difference that only a person can decide.
 */
export async function compareBooks(
  sql: Sql,
  wallet: PayoutWallet,
  { series, requestTable, failures, progress }: ComparisonTerms,
): Promise<Comparison | undefined> {
  const [row] = await sql<{ open: bigint | null; last: bigint | null; count: number }[]>`select max(number) as last,
    count(number)::int as count, min(number) filter (where state in ('submitting', 'submitted')) as open from payouts`;
  const last = Number(row?.last ?? 0n);
  const gaps = last - (row?.count ?? 0);
  const of = `${requestTable} ${gaps}`;
  if (progress !== undefined && progress.of !== of) Object.assign(progress, { of, through: 0 });
  // A number that is missing was deleted by hand, and another request table may come of a rollback of the chain, which
  // concerns any number of payouts: everything is compared, however old.
  const isWhole = gaps === 0 && (await lastAgreement(sql)).table === requestTable;
  const from = isWhole
    ? Math.max(1, Math.min(Number(row?.open ?? last + 1), last - LOOK_BACK))
    : (progress?.through ?? 0) + 1;
  let all: Comparison = { missing: [], displaced: [], unsettled: [], contradictions: [] };
  for (let first = from; ; first += AT_ONCE) {
    // The last part has all payments that only the wallet has.
    const through = first + AT_ONCE > last ? undefined : first + AT_ONCE - 1;
    const part = await comparePart(sql, wallet, { series, requestTable, failures }, first, through);
    if (part === undefined) return undefined;
    const { missing, displaced, unsettled, contradictions } = part.compared;
    all = {
      missing: [...all.missing, ...missing],
      displaced: [...all.displaced, ...displaced],
      unsettled: [...all.unsettled, ...unsettled],
      contradictions: [...all.contradictions, ...contradictions],
    };
    if (through === undefined || (progress !== undefined && problemOf(all) !== undefined)) return all;
    if (part.isSettled && progress?.through === first - 1) progress.through = through;
  }
}

export type ComparisonTerms = {
  readonly series: PayoutSeries;
  readonly requestTable: string;
  readonly failures?: ReconciliationDependencies['failures'];
  readonly progress?: Progress;
};

async function comparePart(
  sql: Sql,
  wallet: PayoutWallet,
  { series, requestTable, failures }: ComparisonTerms,
  first: number,
  through: number | undefined,
): Promise<{ compared: Comparison; isSettled: boolean } | undefined> {
  const idOf = (number: number) => requestIdOf(series.payouts, number);
  const end = through === undefined ? undefined : idOf(through);
  const listed = await wallet.payments(series.payouts, first === 1 ? undefined : idOf(first - 1), end);
  if (listed.kind !== 'ok') return undefined;
  const payments = listed.value.filter(({ requestId }) => end === undefined || requestId <= end);
  const booked = await bookedPayouts(sql, first, through);
  const compared = compareWithWallet(series.payouts, requestTable, booked, payments);
  const { missing, displaced, unsettled, contradictions } = compared;
  const isSame = contradictions.length === 0 && displaced.length === 0;
  const isSettled =
    isSame &&
    missing.length === 0 &&
    unsettled.length === 0 &&
    booked.every(({ state }) => state === 'finalized' || state === 'void');
  if (isSame || failures === undefined) return { compared, isSettled };
  const accounts = booked.flatMap(({ items }) => items.flatMap(({ accountId }) => accountId ?? []));
  const failing = new Set((await failures([...new Set(accounts)])).keys());
  return { compared: compareWithWallet(series.payouts, requestTable, booked, payments, failing), isSettled };
}

/** Payments of the chain that are in no payout of the books. */
export async function unknownPayments(sql: Sql, paid: readonly ChainPayment[]): Promise<ChainPayment[]> {
  const names = paid.map(({ transactionId }) => `\\x${transactionId}`);
  const rows = await sql<{ id: Buffer }[]>`select transaction_id as id from payouts
    where transaction_id = any(${names}::text[]::bytea[])`;
  const known = new Set(rows.map(({ id }) => id.toString('hex')));
  return paid.filter(({ transactionId }) => !known.has(transactionId));
}

/**
 * Whether a payment of the chain is that of a payout. What it carries names the payout; its recipients do where it
 * carries nothing, or the payout has no commitment.
 */
const isOf = ({ payloadText: own, items }: OpenPayout, { payloadText = null, recipients }: ChainPayment): boolean =>
  own !== null && payloadText !== null ? own === payloadText : samePayment(items, recipients);

/** Those from the pool's address that are no payment of a payout either that waits for one, because the wallet has forgotten its request. */
export async function unexplainedPayments(
  sql: Sql,
  paid: readonly ChainPayment[],
  requestTable: string,
): Promise<ChainPayment[]> {
  const open = (await forgotten(sql, requestTable)).filter(({ state }) => state === 'submitting');
  const own = paid.filter(({ isOther }) => !isOther);
  return (await unknownPayments(sql, own)).filter((payment) => !open.some((payout) => isOf(payout, payment)));
}

export class Reconciliation {
  readonly #options: ReconciliationOptions;
  readonly #with: ReconciliationDependencies;
  readonly #progress: Progress = { of: '', through: 0 };
  #held: { readonly reason: string; readonly at: number } | null | undefined;

  constructor(options: ReconciliationOptions, dependencies: ReconciliationDependencies) {
    this.#options = options;
    this.#with = dependencies;
  }

  #fenced<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return fenced(this.#with.sql, this.#options.term, work);
  }

  /** True when books and wallet agree, perhaps after a repair. */
  async run(status: WalletStatus): Promise<boolean> {
    if (status.stopped !== null) return this.hold(`the wallet has stopped its payments: ${status.stopped}`);
    const agreed = await lastAgreement(this.#with.sql);
    let unsure: number | undefined;
    if (agreed.table !== undefined && agreed.table !== status.requestTable) {
      if (!status.isCaughtUp) return false;
      unsure = await this.#fenced((transaction) => unsureThrough(transaction, status));
      const explained = await this.#explainHistory(status, agreed.height);
      if (explained === undefined) return false;
      if (explained !== true)
        return this.hold(unsure === undefined ? explained : `${explained}; ${unsureText(unsure)}`);
    }
    await this.#resolveForgotten(status, Math.max(status.validityCuts, agreed.validityCuts));
    const compared = await this.#compare(status.requestTable);
    if (compared === undefined) return false;
    const problem =
      problemOf(compared) ??
      (await this.#repair(compared, status.requestTable)) ??
      (unsure === undefined ? undefined : unsureText(unsure));
    if (problem !== undefined) return this.hold(problem);
    await this.#fenced(async (transaction) => {
      await noteAgreement(transaction, status);
      if (this.#held !== null) await holdPayouts(transaction, null);
    });
    if (this.#held != null) this.#with.log.warn('payouts go on: the books agree with the wallet', {});
    this.#held = null;
    return true;
  }

  /**
   * Reports why payouts are held, in the log, on the operator's page and in the metrics. Returns false, for callers to
   * return.
   */
  async hold(reason: string): Promise<false> {
    const { sql, log, now } = this.#with;
    this.#held ??= (await payoutsHeld(sql)) === reason ? { reason, at: 0 } : undefined;
    if (this.#held?.reason !== reason) await this.#fenced((transaction) => holdPayouts(transaction, reason));
    if (this.#held?.reason !== reason || now() - this.#held.at > HELD_AGAIN_MILLIS) {
      log.error('payouts are held', { reason });
      this.#held = { reason, at: now() };
    }
    return false;
  }

  async #compare(requestTable: string): Promise<Comparison | undefined> {
    const { sql, wallet, failures } = this.#with;
    const { series } = this.#options;
    return compareBooks(sql, wallet, { series, requestTable, failures, progress: this.#progress });
  }

  /** Undefined if the books agree with the wallet; else why they do not. */
  async #repair({ missing, displaced }: Comparison, requestTable: string): Promise<string | undefined> {
    if (missing.length === 0 && displaced.length === 0) return undefined;
    const { log, isCaughtUp } = this.#with;
    const terms: RepairTerms = { requestTable, isCaughtUp: await isCaughtUp(), isAdvanceAllowed: false };
    const numbers = missing.map(({ number }) => number);
    try {
      const done = await this.#fenced(async (transaction) => {
        const repaired = await bookLost(transaction, missing, displaced, terms);
        await noteRepair(transaction, 'svc-pool', missing, repaired.advanced);
        return repaired;
      });
      log.error('the database has lost payouts that the wallet has made; they are booked again', {
        payments: done.payments,
        numbers,
        atoms: done.total,
        advanced: done.advanced,
      });
      return undefined;
    } catch (error) {
      if (!(error instanceof UncoveredError)) throw error;
      return `the database has lost ${missing.length} payouts that the wallet has made (numbers ${numbers.slice(0, 20).join(', ')}): ${error.message}`;
    }
  }

  /**
   * The wallet has lost its requests; the chain still has the payments. True if the books have all of them, undefined
   * if that is not known now.
   */
  async #explainHistory(status: WalletStatus, since: number): Promise<true | string | undefined> {
    const { sql, wallet } = this.#with;
    const paid = await wallet.paidSince(since);
    if (paid.kind !== 'ok') return undefined;
    const unknown = await unexplainedPayments(sql, paid.value, status.requestTable);
    if (unknown.length === 0) return true;
    const names = unknown.slice(0, 5).map(({ transactionId }) => transactionId);
    const remedy = unknown.some(({ isUnread }) => isUnread) ? `; ${UNREAD_REMEDY}` : '';
    return `the wallet has forgotten its requests (another request table), and ${unknown.length} payments of it are not in the books: ${names.join(', ')}${remedy}`;
  }

  /**
   * Payouts that were requested from a lost request table. The wallet's record or the chain may have the payment; if
   * neither has it when its validity is over, it was never made and never will be.
   */
  async #resolveForgotten(status: WalletStatus, validityCuts: number): Promise<void> {
    const { sql, wallet, log } = this.#with;
    for (const payout of await forgotten(sql, status.requestTable)) {
      const listed = await wallet.payments(payout.requestId as string);
      // Null for one that is known from the wallet's record alone: the whole chain is looked through once, and from its
      // end on as for any other.
      const asked = payout.askedHeight ?? status.indexedHeight;
      const paid = await wallet.paidSince((payout.askedHeight ?? 0) - 1);
      if (listed.kind !== 'ok' || paid.kind !== 'ok' || !status.isCaughtUp) return;
      const { id, state, transactionId: sent } = payout;
      const recorded = listed.value.find(({ requestId }) => requestId === payout.requestId);
      // What another pool of this wallet, or its owner, paid to the same miners is not this payout.
      const unknown = await unknownPayments(
        sql,
        paid.value.filter(({ isOther }) => !isOther),
      );
      const onChain = unknown.find((one) => isOf(payout, one));
      const found = recorded !== undefined && samePayment(recorded.recipients, payout.items) ? recorded : onChain;
      // It is followed by its transaction for as long as anything shows that it may have been paid.
      const isThere = found !== undefined || paid.value.some(({ transactionId }) => transactionId === sent);
      if (state === 'submitted' && isThere) continue;
      if (found?.transactionId != null) {
        const { transactionId, fee } = found;
        log.warn('a payout that the wallet had forgotten was found', { payout: id, transaction: transactionId });
        await this.#fenced((transaction) => markSubmitted(transaction, id, transactionId, fee));
        continue;
      }
      const until = asked + validityCuts + SLACK_CUTS;
      const isOver = status.indexedHeight > until && !unknown.some(({ isUnread }) => isUnread);
      const reason = isOver
        ? 'the wallet forgot it and never paid it: it is paid anew'
        : `the wallet has forgotten its requests: from height ${until} on it is certain whether this was paid`;
      if (isOver) log.warn('a payout that the wallet had forgotten was never made', { payout: id });
      await this.#fenced((transaction) => {
        if (!isOver) return noteWaiting(transaction, id, asked, reason);
        return markVoid(transaction, id, state, reason, true);
      });
    }
  }
}

async function noteWaiting(transaction: Transaction, id: string, asked: number, reason: string): Promise<void> {
  await transaction`update payouts set asked_height = ${asked}, reason = ${reason}
    where id = ${id} and reason is distinct from ${reason}`;
}

export async function noteRepair(
  transaction: Transaction,
  actor: string,
  lost: readonly LostPayment[],
  advanced: bigint,
): Promise<void> {
  const details = {
    payments: lost.map(({ number, transactionId }) => ({ number, transaction: transactionId })),
    advanced: String(advanced),
  };
  await transaction`insert into operator_log (actor, action, details)
    values (${actor}, 'payouts_repaired', ${transaction.json(details as never)})`;
}

/** Requested from a table that the wallet no longer has. */
async function forgotten(sql: Sql, requestTable: string): Promise<OpenPayout[]> {
  return (await openPayouts(sql)).filter(
    ({ requestId, requestTable: table }) => requestId !== null && table !== requestTable,
  );
}

/** Differences that only a person can decide. */
export function problemOf({ contradictions, unsettled }: Comparison): string | undefined {
  const [first] = contradictions;
  if (first !== undefined) return first;
  const [other] = unsettled;
  if (other === undefined) return undefined;
  const { payout, says } = other;
  return `payment ${payout.number} is ${payout.state} in the books, and the wallet says that it is ${says}: the chain was rolled back, or the books were changed by hand`;
}
