/** Accounts: address and payload are one thing, and balance, in flight and paid follow from credits and payouts. */
import { formatAddress } from '../../protocol/address.ts';
import { attempt } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Sql } from '../database/connect.ts';
import type { Findings } from './findings.ts';

type AccountRow = {
  id: number;
  payload: Buffer;
  address: string;
  name: Buffer | null;
  balance: bigint;
  in_flight: bigint;
  paid: bigint;
  flying: string;
  settled: string;
};

export async function auditAccounts(
  sql: Sql,
  network: NetworkName,
  credited: ReadonlyMap<number, bigint>,
  findings: Findings,
): Promise<number> {
  let count = 0;
  const known = new Set<number>();
  const cursor = sql<AccountRow[]>`select a.id, a.payload, a.address, n.payload as name, a.balance, a.in_flight, a.paid,
      coalesce(sum(i.amount) filter (where p.state in ('reserved', 'submitting', 'submitted')), 0)::text as flying,
      coalesce(sum(i.amount) filter (where p.state = 'finalized'), 0)::text as settled
    from accounts a left join payout_items i on i.account_id = a.id left join payouts p on p.id = i.payout_id
      left join account_names n on n.account_id = a.id
    group by a.id, n.payload order by a.id`.cursor(5_000);
  for await (const rows of cursor)
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
      const balance = (credited.get(row.id) ?? 0n) - BigInt(row.flying) - BigInt(row.settled);
      findings.compare(`${name}: balance`, row.balance, balance);
    }
  for (const [id, atoms] of credited)
    if (!known.has(id)) findings.add(`account ${id}`, 'gone', `${atoms} atoms credited`);
  return count;
}
