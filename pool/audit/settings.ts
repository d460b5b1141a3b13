/**
 * Checks the height of the books, from which all deadlines are counted: slices close by height alone (books rule 2), so
 * it lies in the open slice; and no list was made before its slice closed, or at a later height than this.
 */
import { parseInForce, TERMS_SETTING } from '../books/terms-in-force.ts';
import type { Sql } from '../database/connect.ts';
import { isEdit } from '../edits/edits.ts';
import { SERVICES } from '../journal/journal-record.ts';
import type { Findings } from './findings.ts';

/** Cuts by which the payouts, which follow the wallet, may be ahead of the books; and the books ahead of the node. */
const MAX_LAG = 16;
const MAX_PAUSES = 12;
const WHOLE = /^(?:0|[1-9]\d{0,14})$/;

type NotedHeight = {
  readonly height: string | null;
  /** The newest slice. */
  readonly slice: number | null;
  readonly slice_cuts: number | null;
  readonly closed: number;
};

const readReached = async (sql: Sql): Promise<NotedHeight> => {
  const [row] = await sql<NotedHeight[]>`select
      (select value from settings where name = 'chain_height') as height, s.number as slice, s.slice_cuts,
      (select count(*)::int from slices where closed_height is not null) as closed
    from (select 1) one left join lateral (select number, slice_cuts from slices order by number desc limit 1) s on true`;
  return row as NotedHeight;
};

const sliceAt = ({ height, slice_cuts: cuts }: NotedHeight): number => Math.floor(Number(height) / (cuts ?? 1));

/**
 * The books open slices a moment before they record the cut that opened them: a running pool is given time for that.
 * Says of a moment of the books whether it can be audited; books that do not go on are audited as they are.
 */
export function whenSettled(pauseMillis = 5_000): (sql: Sql) => Promise<boolean> {
  let before: NotedHeight | undefined;
  let tries = 0;
  return async (sql) => {
    const now = await readReached(sql);
    const hasGoneOn = before === undefined || now.slice !== before.slice || now.height !== before.height;
    before = now;
    const isSettled = now.slice === null || now.height === null || sliceAt(now) >= now.slice;
    if (isSettled || !hasGoneOn || tries++ === MAX_PAUSES) return true;
    await new Promise((resolve) => setTimeout(resolve, pauseMillis));
    return false;
  };
}

export type SettingsOptions = {
  /** The address that blocks pay, and the newest cut of a node. */
  readonly ledger?: { readonly poolAddress: string; readonly height: number };
};

export async function auditSettings(sql: Sql, { ledger }: SettingsOptions, findings: Findings): Promise<void> {
  const reached = await readReached(sql);
  const { height, slice, closed } = reached;
  const name = 'setting chain_height';
  if (height === null) {
    // A new pool has opened a slice but recorded no cut. Without a ledger, the books alone do not show whether anything
    // is due.
    if (closed > 0 && ledger !== undefined) findings.add(name, 'none', `a cut of slice ${slice}`);
    else if (closed > 0) findings.skip(name, 'none is on record');
  } else if (!WHOLE.test(height)) findings.add(name, height, `a cut of slice ${slice}`);
  else {
    const ahead = slice === null ? 0 : slice - sliceAt(reached);
    // If the node does not answer, the books can stop between opening a slice and recording the cut.
    if (ahead === 1) findings.skip(name, `cut ${height} is before slice ${slice}, which is open`);
    else if (ahead !== 0) findings.add(name, height, `a cut of slice ${slice}, the newest one`);
    if (ledger !== undefined && Number(height) > ledger.height + MAX_LAG)
      findings.skip(name, `cut ${height}; the node has read up to cut ${ledger.height}`);
    await auditMade(sql, findings);
    await auditFinals(sql, Number(height), findings);
  }
  const [terms] = await sql<{ value: string }[]>`select value from settings where name = ${TERMS_SETTING}`;
  if (terms !== undefined && parseInForce(terms.value) === undefined)
    findings.add(`setting ${TERMS_SETTING}`, terms.value, 'terms of a start, by service');
  await auditEdits(sql, findings);
  if (ledger === undefined) return;
  const [address] = await sql<{ value: string }[]>`select value from settings where name = 'pool_address'`;
  findings.compare('setting pool_address', address?.value ?? 'none', ledger.poolAddress);
}

/** An edit that cannot be read stops the books and the payouts. */
async function auditEdits(sql: Sql, findings: Findings): Promise<void> {
  const rows = await sql<{ name: string; value: string }[]>`select name, value from settings
    where name like 'edit\\_%' order by name`;
  for (const { name, value } of rows)
    if (!isEdit(name, value)) findings.add(`setting ${name}`, value, 'a value that an edit wrote');
}

/** A list is made after its slice has closed, in the order of ids, at a cut that the books have read. */
async function auditMade(sql: Sql, findings: Findings): Promise<void> {
  const rows = await sql<
    { service: number; slice: number; made: bigint; least: bigint; most: bigint }[]
  >`select * from (
      select c.id, c.service, c.slice, c.made_height as made, greatest((c.slice + 1)::bigint * s.slice_cuts,
        max(c.made_height) over (order by c.id rows between unbounded preceding and 1 preceding)) as least,
        (select value::bigint from settings where name = 'chain_height') as most
      from credit_lists c join slices s on s.service = c.service and s.number = c.slice) l
    where made < least or made > most order by id`;
  for (const { service, slice, made, least, most } of rows)
    findings.add(
      `credits of slice ${slice} of ${SERVICES[service] ?? service}: made at`,
      made,
      `between cuts ${least} and ${most}`,
    );
}

/** Payouts follow the wallet, which may be ahead of books that have stopped. */
async function auditFinals(sql: Sql, height: number, findings: Findings): Promise<void> {
  const rows = await sql<{ id: string; final_height: bigint }[]>`select id, final_height from payouts
    where final_height > ${height + MAX_LAG} order by final_height`;
  for (const { id, final_height: final } of rows)
    findings.skip(`payout ${id}`, `final in cut ${final}, and the books have read up to cut ${height}`);
}
