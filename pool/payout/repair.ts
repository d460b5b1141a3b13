/**
 * `svc-pool repair-payouts`: compares the wallet's payments with the books, and corrects the books at a person's
 * request. The accountant itself makes unambiguous repairs (pool/payout/reconciliation.ts); this is for the rest, and
 * for inspection.
 */
import { readCommitmentText } from '../../protocol/books/books-commitment.ts';
import type { Sql } from '../database/connect.ts';
import { bookLost, type LostPayment, lostByNumber, lostOnChain, UncoveredError, unsettle } from './books-repair.ts';
import { headOf } from './commitment.ts';
import { holdPayouts } from './payout-hold.ts';
import type { PayoutSeries } from './payout-series.ts';
import type { ChainPayment, PayoutWallet } from './payout-wallet.ts';
import {
  compareBooks,
  lastAgreement,
  noteAgreement,
  noteRepair,
  UNREAD_REMEDY,
  unexplainedPayments,
  unsureText,
  unsureThrough,
} from './reconciliation.ts';
import type { Comparison } from './witness.ts';

export type RepairOptions = {
  /** Without it the books are only read. */
  readonly apply: boolean;
  /** Payments beyond the credits in the books are recorded, however large they are. */
  readonly advance: boolean;
};

export type RepairReport = {
  readonly lines: readonly string[];
  /** Books and wallet agree now. */
  readonly agree: boolean;
};

type Findings = Comparison & {
  /** For a wallet that has lost its requests: payments missing in the books. Those that carry a head of these books, and the numbers between them. */
  readonly numbered: readonly LostPayment[];
  /** Those that carry the head of a slice which the books have not closed. */
  readonly unreached: readonly ChainPayment[];
  /** Those of which it is not known whom they pay. */
  readonly unread: readonly ChainPayment[];
  /** Those that carry none: to miners, and others. */
  readonly toMiners: readonly ChainPayment[];
  readonly toOthers: readonly ChainPayment[];
};

const coinsOf = (payment: { recipients: readonly { amount: bigint }[] }): bigint =>
  payment.recipients.reduce((sum, { amount }) => sum + amount, 0n);

type RepairDependencies = { readonly sql: Sql; readonly wallet: PayoutWallet; readonly series: PayoutSeries };

const REPAIR_LOCK = 0x5356_4311;

/** One correction after another: the second person finds what the first one has left. */
export function repairPayouts(options: RepairOptions, dependencies: RepairDependencies): Promise<RepairReport> {
  if (!options.apply) return repair(options, dependencies);
  return dependencies.sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${REPAIR_LOCK})`;
    return repair(options, dependencies);
  }) as Promise<RepairReport>;
}

async function repair(options: RepairOptions, { sql, wallet, series }: RepairDependencies): Promise<RepairReport> {
  const status = await wallet.status();
  if (status.kind !== 'ok') return { lines: [`the wallet is not ready: ${status.reason}`], agree: false };
  const { requestTable, stopped, isCaughtUp } = status.value;
  if (stopped !== null) return { lines: [`the wallet has stopped its payments: ${stopped}`], agree: false };
  if (!isCaughtUp) return { lines: ['the wallet is still reading the chain: try again when it has'], agree: false };
  const findings = await find(sql, wallet, series, requestTable);
  if (findings === undefined) return { lines: ['the wallet does not list its payments now: try again'], agree: false };
  const unsure = await unsureThrough(sql, status.value, { isNoted: options.apply });
  const lines = [...linesOf(findings), ...(unsure === undefined ? [] : [unsureText(unsure)])];
  const { contradictions, missing, displaced, unsettled, numbered, unreached, unread, toMiners, toOthers } = findings;
  const onChain = numbered.length + unreached.length + unread.length + toMiners.length + toOthers.length;
  const count = missing.length + displaced.length + unsettled.length + onChain;
  if (count === 0 && contradictions.length === 0)
    return {
      lines: [...lines, 'the books have every payment that the wallet has made'],
      agree: unsure === undefined,
    };
  if (contradictions.length > 0)
    return {
      lines: [...lines, 'the last lines cannot be repaired here: they are not what a rollback does'],
      agree: false,
    };
  if (unreached.length > 0)
    return { lines: [...lines, 'the books are still catching up: try again when they have'], agree: false };
  if (unread.length > 0) return { lines: [...lines, UNREAD_REMEDY], agree: false };
  if (!options.apply) return { lines: [...lines, 'nothing was changed; --apply corrects the books'], agree: false };
  // A number that is on no payment yet may still be on one, and what is corrected now would be paid again.
  if (unsure !== undefined) return { lines: [...lines, 'nothing was changed: try again then'], agree: false };
  const lost: LostPayment[] = [...missing, ...numbered, ...toMiners.map(lostOnChain)];
  const terms = { requestTable, isCaughtUp: true, isAdvanceAllowed: options.advance };
  try {
    await sql.begin(async (transaction) => {
      // The accountant waits meanwhile, and compares again before it pays.
      await transaction`select number from term for update`;
      for (const each of unsettled) await unsettle(transaction, each);
      const { advanced } = await bookLost(transaction, lost, displaced, terms);
      await noteRepair(transaction, 'svc-pool repair-payouts', lost, advanced);
      await noteAgreement(transaction, status.value);
      await holdPayouts(transaction, null);
      if (advanced > 0n) lines.push(`${advanced} atoms are booked as advances: later income makes up for them`);
    });
  } catch (error) {
    if (!(error instanceof UncoveredError)) throw error;
    const advice =
      'if that is correct and will not change, --advance records it anyway: later income of these miners makes up for it';
    return { lines: [...lines, error.message, advice], agree: false };
  }
  return { lines: [...lines, 'the books are corrected'], agree: true };
}

async function find(
  sql: Sql,
  wallet: PayoutWallet,
  series: PayoutSeries,
  requestTable: string,
): Promise<Findings | undefined> {
  const compared = await compareBooks(sql, wallet, { series, requestTable });
  if (compared === undefined) return undefined;
  const agreed = await lastAgreement(sql);
  const none = { numbered: [], unreached: [], unread: [], toMiners: [], toOthers: [] };
  if (agreed.table === undefined || agreed.table === requestTable) return { ...compared, ...none };
  const paid = await wallet.paidSince(agreed.height);
  if (paid.kind !== 'ok') return undefined;
  const known = new Set(compared.missing.map(({ transactionId }) => transactionId));
  const [row] = await sql<{ last: bigint | null }[]>`select max(number) as last from payouts`;
  const last = Math.max(Number(row?.last ?? 0n), ...compared.missing.map(({ number }) => number));
  const carried = new Map<number, ChainPayment>();
  const unreached: ChainPayment[] = [];
  const unread: ChainPayment[] = [];
  const unknown: ChainPayment[] = [];
  for (const payment of await unexplainedPayments(sql, paid.value, requestTable)) {
    if (known.has(payment.transactionId)) continue;
    const commitment = readCommitmentText(payment.payloadText ?? '');
    const head = commitment && (await headOf(sql, commitment.slice));
    if (payment.isUnread) unread.push(payment);
    else if (commitment !== undefined && head === undefined) unreached.push(payment);
    else if (commitment === undefined || head !== commitment.head) unknown.push(payment);
    else if (commitment.number <= last || carried.has(commitment.number)) unknown.push(payment);
    else carried.set(commitment.number, payment);
  }
  const { numbered, strays } = lostByNumber(carried, last, series);
  unknown.push(...strays);
  const addresses = unknown.flatMap(({ recipients }) => recipients.map(({ address }) => address));
  const rows = await sql<{ address: string }[]>`select address from accounts where address = any(${addresses}::text[])`;
  const miners = new Set(rows.map(({ address }) => address));
  // One that carries the head of another history is a payout too, if it pays a miner of this pool: that history was lost.
  const isToMiners = ({ recipients, payloadText }: ChainPayment) =>
    recipients.every(({ address }) => miners.has(address)) ||
    (readCommitmentText(payloadText ?? '') !== undefined && recipients.some(({ address }) => miners.has(address)));
  return {
    ...compared,
    numbered,
    unreached,
    unread,
    toMiners: unknown.filter(isToMiners),
    toOthers: unknown.filter((payment) => !isToMiners(payment)),
  };
}

function linesOf(findings: Findings): string[] {
  const { missing, displaced, unsettled, contradictions, numbered, unreached, unread, toMiners, toOthers } = findings;
  const chain = (what: string) => (payment: ChainPayment) =>
    `transaction ${payment.transactionId} (${coinsOf(payment)} atoms to ${payment.recipients.length}): ${what}`;
  return [
    ...missing.map(
      (payment) =>
        `payment ${payment.number} (${coinsOf(payment)} atoms to ${payment.recipients.length}, ${payment.fate.state}): not in the books; to be booked`,
    ),
    ...displaced.map(({ number, id }) => `payout ${id}: its number ${number} is another payment's; to be given back`),
    ...unsettled.map(
      ({ payout, says }) =>
        `payment ${payout.number} is ${payout.state} in the books and ${says} for the wallet; to be followed again`,
    ),
    ...numbered.map((payment) => {
      const { number, transactionId } = payment;
      return transactionId === null
        ? `payment ${number}: forgotten by the wallet, and not on the chain; its number is not used again`
        : `transaction ${transactionId} (${coinsOf(payment)} atoms to ${payment.recipients.length}): carries the head of payment ${number}; to be booked as that`;
    }),
    ...unread.map(chain('what it pays is not known')),
    ...unreached.map(chain('carries the head of a slice that the books have not closed yet')),
    ...toMiners.map(
      chain('the wallet has forgotten under which number it paid these miners; to be booked as their payout'),
    ),
    ...toOthers.map(chain('to an address that is not a miner here: taken for a payment of yours, not a payout')),
    ...contradictions,
  ];
}
