/**
 * The balance sheet: everything the chain paid the pool must be accounted for. Rewards = balances + in flight + paid +
 * pool fees + rewards not credited yet; network fees of payouts and compounding come out of the pool's fees.
 */
import type { Sql, Transaction } from '../database/connect.ts';

export type BalanceSheet = {
  readonly rewards: bigint;
  readonly uncredited: bigint;
  readonly balances: bigint;
  readonly inFlight: bigint;
  readonly paid: bigint;
  readonly poolFees: bigint;
  readonly networkFees: bigint;
  /** A value other than zero is an alarm. */
  readonly gap: bigint;
};

export async function balanceSheet(sql: Sql | Transaction): Promise<BalanceSheet> {
  const [row] = await sql<Record<string, string>[]>`select
    (select coalesce(sum(reward), 0)::text from blocks where state = 'paid') as rewards,
    (select coalesce(sum(reward), 0)::text from blocks where state = 'paid' and credit_list is null) as uncredited,
    (select coalesce(sum(balance), 0)::text from accounts) as balances,
    (select coalesce(sum(amount), 0)::text from payout_items i join payouts p on p.id = i.payout_id
      where p.state in ('reserved', 'submitting', 'submitted')) as in_flight,
    (select coalesce(sum(amount), 0)::text from payout_items i join payouts p on p.id = i.payout_id
      where p.state = 'finalized') as paid,
    (select coalesce(sum(fee), 0)::text from credit_lists) as fees,
    (select coalesce(sum(fee), 0)::text from payouts where state = 'finalized') as payout_fees,
    (select coalesce(sum(fee), 0)::text from compoundings where state = 'finalized') as compounding_fees`;
  const value = (name: string) => BigInt((row as Record<string, string>)[name] as string);
  const networkFees = value('payout_fees') + value('compounding_fees');
  const sheet = {
    rewards: value('rewards'),
    uncredited: value('uncredited'),
    balances: value('balances'),
    inFlight: value('in_flight'),
    paid: value('paid'),
    poolFees: value('fees') - networkFees,
    networkFees,
  };
  const placed = sheet.uncredited + sheet.balances + sheet.inFlight + sheet.paid + sheet.poolFees + sheet.networkFees;
  return { ...sheet, gap: sheet.rewards - placed };
}
