/**
 * Accounts by the payload that they were created with (books rule 23). Their rows may have been changed since: such an
 * account keeps its owner's work and waits for the operator. Slices, lists and proofs use the result of these lookups.
 */
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { byteaTexts, type Sql, type Transaction } from '../database/connect.ts';

/** The payloads that accounts were made with, by their ids. */
export async function madePayloads(sql: Sql | Transaction, ids: readonly number[]): Promise<Map<number, Buffer>> {
  const rows = await sql<{ id: number; payload: Buffer }[]>`select a.id, coalesce(n.payload, a.payload) as payload
    from accounts a left join account_names n on n.account_id = a.id where a.id = any(${ids as number[]}::int[])`;
  return new Map(rows.map(({ id, payload }) => [id, payload]));
}

/** The id of the account that was made with a payload, as a part of a query; null where there is none. */
export const madeWith = (sql: Sql, payload: Bytes) => sql`coalesce(
  (select min(account_id) from account_names where payload = ${Buffer.from(payload)}),
  (select a.id from accounts a left join account_names n on n.account_id = a.id
    where a.payload = ${Buffer.from(payload)} and n.account_id is null))`;

/**
 * The account of each payload, created if missing. A second account of the same owner would appear twice in one list,
 * which is not valid. A new one dates from its first share: the books may be minutes behind, and rates are taken since then.
 */
export async function ensureAccounts(
  sql: Sql | Transaction,
  payloads: readonly string[],
  network: NetworkName,
  firstShareMillis = Number.MAX_SAFE_INTEGER,
): Promise<[string, number][]> {
  await makeAccounts(sql, payloads, network, firstShareMillis);
  const found = await findAccounts(sql, payloads);
  const without = payloads.filter((payload) => !found.has(payload));
  if (without.length === 0) return [...found];
  await restoreRows(sql, without, network, new Set());
  await makeAccounts(sql, without, network, firstShareMillis);
  return [...found, ...(await findAccounts(sql, without))];
}

async function makeAccounts(
  sql: Sql | Transaction,
  payloads: readonly string[],
  network: NetworkName,
  firstShareMillis: number,
): Promise<void> {
  const addresses = payloads.map((payload) => formatAddress(fromHex(payload), network));
  await sql`with made as (insert into accounts (payload, address, created_at)
      select w.payload, w.address, least(now(), to_timestamp(${firstShareMillis} / 1000.0)) from unnest(${byteaTexts(payloads)}::text[]::bytea[], ${addresses}::text[]) as w (payload, address)
      where not exists (select from account_names n where n.payload = w.payload)
      on conflict do nothing returning id, payload)
    insert into account_names (account_id, payload) select id, payload from made`;
}

/** The first account of each owner. Without a recorded name, the payload of the row counts. */
async function findAccounts(sql: Sql | Transaction, payloads: readonly string[]): Promise<Map<string, number>> {
  const bytes = byteaTexts(payloads);
  const rows = await sql<{ id: number; payload: Buffer }[]>`select id, payload from (
      select a.id, a.payload, false as named from accounts a left join account_names n on n.account_id = a.id
        where a.payload = any(${bytes}::text[]::bytea[]) and n.account_id is null
      union all select account_id, payload, true from account_names where payload = any(${bytes}::text[]::bytea[])
    ) as found order by named, id desc`;
  return new Map(rows.map((row) => [row.payload.toString('hex'), row.id]));
}

/**
 * Rows of other accounts with these payloads or addresses are restored to their original ones: payload and address are
 * unique, so work of their true owner could not be booked otherwise. A row that blocks another restoration is restored
 * first.
 */
async function restoreRows(
  sql: Sql | Transaction,
  payloads: readonly string[],
  network: NetworkName,
  seen: Set<number>,
): Promise<void> {
  const addresses = payloads.map((payload) => formatAddress(fromHex(payload), network));
  const rows = await sql<{ id: number; payload: Buffer; address: string; name: Buffer }[]>`select a.id, a.payload,
      a.address, n.payload as name from accounts a join account_names n on n.account_id = a.id
    where a.payload = any(${byteaTexts(payloads)}::text[]::bytea[]) or a.address = any(${addresses}::text[])`;
  const changed = rows.filter(
    ({ id, payload, address, name }) =>
      !seen.has(id) && (!payload.equals(name) || address !== formatAddress(name, network)),
  );
  if (changed.length === 0) return;
  for (const { id } of changed) seen.add(id);
  await restoreRows(
    sql,
    changed.map(({ name }) => name.toString('hex')),
    network,
    seen,
  );
  await sql`select set_config('svc_pool.restore', 'on', true)`;
  for (const { id, payload, address, name } of changed) {
    await sql`update accounts set payload = ${name}, address = ${formatAddress(name, network)} where id = ${id}`;
    const details = { account: id, payload: payload.toString('hex'), address };
    await sql`insert into operator_log (actor, action, details)
      values ('pool', 'account_restored', ${sql.json(details)})`;
  }
  await sql`select set_config('svc_pool.restore', '', true)`;
}
