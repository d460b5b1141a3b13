/**
 * Thresholds that held until some time ago, of an account or of the pool. Only those count that are higher than all
 * after them, and only for a month: checkers ask for the highest of the last days (books rule 29).
 */
import type { Sql, Transaction } from '../database/connect.ts';

/** Longer than any checker looks back: a day, and two payout intervals of at most a week. */
const KEPT_MILLIS = 30 * 24 * 3_600_000;
/** With more of them the last one counts for longer: an account cannot displace what it had. */
export const MAX_EARLIER = 32;

/** The date of the newest cut, by the node. */
export type LedgerDate = { readonly newestMillis: number };

/** When a threshold or a pause ends. Checkers compare it with the ledger's dates, so a clock that is behind does not count. */
export const endMillis = (clockMillis: number, ledger: LedgerDate | undefined): number =>
  Math.max(clockMillis, ledger?.newestMillis ?? 0);

export type EarlierMinimum = { readonly atoms: bigint; readonly untilMillis: number };

/** The earlier thresholds, newest first, once another one ends. */
export function withEarlier(known: readonly EarlierMinimum[], ended: EarlierMinimum): EarlierMinimum[] {
  const { atoms, untilMillis } = ended;
  const higher = known.filter((each) => each.atoms > atoms && untilMillis - each.untilMillis < KEPT_MILLIS);
  const [last, ...rest] = higher;
  if (last === undefined || higher.length < MAX_EARLIER) return [ended, ...higher];
  return [{ ...last, untilMillis: Math.max(last.untilMillis, untilMillis) }, ...rest];
}

/**
 * Those of an account and of the pool: until it chose its own, the pool's minimum was the account's threshold. Who
 * chooses the minimum that has just fallen must not leave the pool less time than all others do.
 */
export async function minimumsBefore(sql: Sql, accountId: number): Promise<EarlierMinimum[]> {
  const known = [...(await earlierMinimums(sql, accountId)), ...(await earlierMinimums(sql, null))];
  return known.sort((a, b) => b.untilMillis - a.untilMillis);
}

/** `accountId` null: the pool's own. */
async function earlierMinimums(sql: Sql | Transaction, accountId: number | null): Promise<EarlierMinimum[]> {
  const rows = await sql<{ atoms: bigint; until: bigint }[]>`select atoms, until_millis as until from payout_minimums
    where account_id is not distinct from ${accountId}::int order by until_millis desc limit ${MAX_EARLIER}`;
  return rows.map(({ atoms, until }) => ({ atoms, untilMillis: Number(until) }));
}

/** To be called in the transaction that changes the threshold, which holds a lock on it. */
export async function noteEarlier(
  transaction: Transaction,
  accountId: number | null,
  ended: EarlierMinimum,
): Promise<void> {
  const kept = withEarlier(await earlierMinimums(transaction, accountId), ended);
  await transaction`delete from payout_minimums where account_id is not distinct from ${accountId}::int`;
  await transaction`insert into payout_minimums (account_id, atoms, until_millis)
    select ${accountId}::int, * from unnest(${kept.map(({ atoms }) => String(atoms))}::text[]::bigint[],
      ${kept.map(({ untilMillis }) => untilMillis)}::bigint[])`;
}
