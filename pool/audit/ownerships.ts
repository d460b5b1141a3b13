/**
 * Checks the owners of connections (books rule 22): both records of each agree, and the newest list at that time never
 * decreases.
 */
import type { Sql } from '../database/connect.ts';
import { type Findings, REMEDIES } from './findings.ts';

type Row = { owner: Buffer; own: string | null; noted: string | null };

export async function auditOwnerships(sql: Sql, findings: Findings): Promise<void> {
  const different = await sql<Row[]>`select coalesce(o.owner, n.owner) as owner,
      o.service || ' ' || o.account_id || ' ' || o.worker_id || ' ' || o.after_list as own,
      n.service || ' ' || n.account_id || ' ' || n.worker_id || ' ' || n.after_list as noted
    from ownerships o full join ownership_notes n on n.owner = o.owner
    where (o.service, o.account_id, o.worker_id, o.after_list)
      is distinct from (n.service, n.account_id, n.worker_id, n.after_list) order by 1`;
  for (const { owner, own, noted } of different)
    findings.add(
      `owner ${owner.toString('hex')}: service, account, worker, newest list`,
      own ?? 'not on record',
      noted ?? 'not noted',
      REMEDIES.finder,
    );
  const fallen = await sql<{ owner: Buffer; after_list: number; before: number }[]>`select owner, after_list, before
    from (select number, owner, after_list,
        greatest(0, max(after_list) over (order by number rows between unbounded preceding and 1 preceding)) as before
      from ownership_notes) n
    where after_list < before or after_list > (select coalesce(max(id), 0) from credit_lists) order by number`;
  for (const { owner, after_list: list, before } of fallen)
    findings.add(
      `owner ${owner.toString('hex')}: newest list`,
      list,
      `${before} or later, and one that was made`,
      REMEDIES.finder,
    );
}
