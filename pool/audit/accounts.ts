/** Checks accounts: address and payload match, and balance, in flight and paid follow from credits and payouts. */
import { formatAddress } from '../../protocol/address.ts';
import { attempt } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { accountRows, balanceOf } from '../books/account-row.ts';
import type { Sql } from '../database/connect.ts';
import type { Findings } from './findings.ts';
import { batches } from './snapshot.ts';

/** `credited`: by account; undefined if the lists could not be read, and then balances are not compared. */
export async function auditAccounts(
  sql: Sql,
  network: NetworkName,
  credited: ReadonlyMap<number, bigint> | undefined,
  findings: Findings,
): Promise<number> {
  let count = 0;
  const known = new Set<number>();
  for await (const rows of batches(sql, accountRows(sql), 5_000))
    for (const row of rows) {
      count++;
      known.add(row.id);
      const name = `account ${row.id}`;
      const address = attempt(() => formatAddress(row.payload, network));
      findings.compare(`${name}: address`, row.address, address.ok ? address.value : 'no address at all');
      findings.compare(
        `${name}: payload`,
        row.payload.toString('hex'),
        row.name?.toString('hex') ?? 'no name on record',
      );
      findings.compare(`${name}: in flight`, row.in_flight, row.flying);
      findings.compare(`${name}: paid`, row.paid, row.settled);
      if (credited !== undefined)
        findings.compare(`${name}: balance`, row.balance, balanceOf(credited.get(row.id) ?? 0n, row));
    }
  for (const [id, atoms] of credited ?? [])
    if (!known.has(id)) findings.add(`account ${id}`, 'gone', `${atoms} atoms credited`);
  return count;
}
