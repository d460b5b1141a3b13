/**
 * `svc-pool repair-payouts`: compares the wallet's payments with the books, and corrects the books at a person's
 * request. The accountant itself makes unambiguous repairs (pool/payout/reconciliation.ts); this is for the rest, and
 * for inspection.
 */
import type { Sql } from '../database/connect.ts';
import { bookLost, type LostPayment, lostOnChain, UncoveredError, unsettle } from './books-repair.ts';
import { holdPayouts } from './payout-hold.ts';
import type { PayoutSeries } from './payout-series.ts';
import type { ChainPayment, PayoutWallet } from './payout-wallet.ts';
import { compareBooks, lastAgreement, noteAgreement, noteRepair, unknownPayments } from './reconciliation.ts';
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
  /** For a wallet that has lost its requests: payments missing in the books, to miners only, and others. */
  readonly toMiners: readonly ChainPayment[];
  readonly toOthers: readonly ChainPayment[];
};

const coinsOf = (payment: { recipients: readonly { amount: bigint }[] }): bigint =>
  payment.recipients.reduce((sum, { amount }) => sum + amount, 0n);

export async function repairPayouts(
  options: RepairOptions,
  { sql, wallet, series }: { sql: Sql; wallet: PayoutWallet; series: PayoutSeries },
): Promise<RepairReport> {
  const status = await wallet.status();
  if (status.kind !== 'ok') return { lines: [`the wallet is not ready: ${status.reason}`], agree: false };
  const { requestTable, stopped, indexedHeight } = status.value;
  if (stopped !== null) return { lines: [`the wallet has stopped its payments: ${stopped}`], agree: false };
  const findings = await find(sql, wallet, series, requestTable);
  if (findings === undefined) return { lines: ['the wallet does not list its payments now: try again'], agree: false };
  const lines = linesOf(findings);
  const { contradictions, missing, displaced, unsettled, toMiners, toOthers } = findings;
  const count = missing.length + displaced.length + unsettled.length + toMiners.length + toOthers.length;
  if (count === 0 && contradictions.length === 0)
    return { lines: ['the books have every payment that the wallet has made'], agree: true };
  if (contradictions.length > 0)
    return {
      lines: [...lines, 'the last lines cannot be repaired here: they are not what a rollback does'],
      agree: false,
    };
  if (!options.apply) return { lines: [...lines, 'nothing was changed; --apply corrects the books'], agree: false };
  const lost: LostPayment[] = [...missing, ...toMiners.map(lostOnChain)];
  const terms = { requestTable, isCaughtUp: true, isAdvanceAllowed: options.advance };
  try {
    await sql.begin(async (transaction) => {
      // The accountant waits meanwhile, and compares again before it pays.
      await transaction`select number from term for update`;
      for (const { payout } of unsettled) await unsettle(transaction, payout);
      const { advanced } = await bookLost(transaction, lost, displaced, terms);
      await noteRepair(transaction, 'svc-pool repair-payouts', lost, advanced);
      await noteAgreement(transaction, requestTable, indexedHeight);
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
  const compared = await compareBooks(sql, wallet, series, requestTable);
  if (compared === undefined) return undefined;
  const agreed = await lastAgreement(sql);
  if (agreed.table === undefined || agreed.table === requestTable) return { ...compared, toMiners: [], toOthers: [] };
  const paid = await wallet.paidSince(agreed.height);
  if (paid.kind !== 'ok') return undefined;
  const known = new Set(compared.missing.map(({ transactionId }) => transactionId));
  const unknown = (await unknownPayments(sql, paid.value)).filter(({ transactionId }) => !known.has(transactionId));
  const addresses = unknown.flatMap(({ recipients }) => recipients.map(({ address }) => address));
  const rows = await sql<{ address: string }[]>`select address from accounts where address = any(${addresses}::text[])`;
  const miners = new Set(rows.map(({ address }) => address));
  const isToMiners = ({ recipients }: ChainPayment) => recipients.every(({ address }) => miners.has(address));
  return {
    ...compared,
    toMiners: unknown.filter(isToMiners),
    toOthers: unknown.filter((payment) => !isToMiners(payment)),
  };
}

function linesOf({ missing, displaced, unsettled, contradictions, toMiners, toOthers }: Findings): string[] {
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
    ...toMiners.map(
      chain('the wallet has forgotten under which number it paid these miners; to be booked as their payout'),
    ),
    ...toOthers.map(chain('to an address that is not a miner here: taken for a payment of yours, not a payout')),
    ...contradictions,
  ];
}
