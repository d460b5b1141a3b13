/**
 * What a sheet must not count because a sheet of the slice was signed before, in books that a fall of the database took away
 * (docs/protocol/books.md, rule 17). A share that is in two journals counts for the one that the books take first, and after
 * a fall that may be the other one. The property is: for each account, worker and slice no more is ever signed, all front ends
 * together, than the slice's leaf says, whatever falls and in whatever order journals come again.
 *
 * So each sheet is on record with the entries that it counts (signed-slices.ts): those of its front end from the first to the
 * last, without the shares that it passed over. Nothing is signed of a slice while the books do not have these entries in
 * it, whole. Where others of them counted before than the sheet passed over, what counts now for another front end may be
 * signed already: no sheet counts these shares. One that now counts otherwise than where it was signed takes the account's
 * receipts of the slice.
 */

import { madePayloads } from '../books/made-accounts.ts';
import { byteaTexts, type Sql } from '../database/connect.ts';
import { SERVICES, type Service } from '../journal/journal-record.ts';
import { accountIn, type LeftOut, type SheetSpan } from './tally.ts';

export type SignedSheet = SheetSpan & { readonly service: Service; readonly slice: number; readonly boot: string };

export type EarlierSheets = LeftOut & {
  /** Slices, as `service slice`, of which the books do not have what was signed. */
  readonly lacking: ReadonlySet<string>;
};

type PlaceRow = { at: number; is_held: boolean; passed_over: string };

export async function earlierSheets(sql: Sql, sheets: readonly SignedSheet[]): Promise<EarlierSheets> {
  const lacking = new Set<string>();
  const shares = new Set<string>();
  const accounts = new Set<string>();
  if (sheets.length === 0) return { lacking, shares, accounts };
  const column = <T>(of: (sheet: SignedSheet) => T): T[] => sheets.map(of);
  const rows = await sql<PlaceRow[]>`select n.at::int, not exists (select 1 from unread_records u
        where u.boot_id = n.boot and u.sequence between n.first and n.last)
      and not exists (select 1 from journal_holes h
        where h.boot_id = n.boot and h.began < n.last and h.until > n.first)
      and n.last <= coalesce((select e.through from slice_ends e
        where e.boot_id = n.boot and e.slice <= n.slice order by e.slice desc limit 1), -1)
      and n.first > coalesce((select e.through from slice_ends e
        where e.boot_id = n.boot and e.slice < n.slice order by e.slice desc limit 1), -1) as is_held,
      left(encode(sha256(convert_to(coalesce((select string_agg(d.sequence::text, ',' order by d.sequence)
        from doubled_shares d where d.boot_id = n.boot
          and d.sequence between n.first and n.last), ''), 'UTF8')), 'hex'), 32) as passed_over
    from unnest(${column(({ service }) => SERVICES.indexOf(service))}::int[], ${column(({ slice }) => slice)}::int[],
      ${byteaTexts(column(({ boot }) => boot))}::text[]::bytea[], ${column(({ first }) => first)}::bigint[],
      ${column(({ last }) => last)}::bigint[]) with ordinality as n(service, slice, boot, first, last, at)`;
  for (const { at, is_held: isHeld, passed_over: passedOver } of rows) {
    const sheet = sheets[at - 1] as SignedSheet;
    if (!isHeld) lacking.add(`${sheet.service} ${sheet.slice}`);
    else if (passedOver !== sheet.passedOver)
      for (const { identity, account, isThere } of await countedBefore(sql, sheet))
        if (isThere) shares.add(identity);
        else accounts.add(accountIn(sheet.service, sheet.slice, account));
  }
  return { lacking, shares, accounts };
}

/** The shares of a sheet's entries that counted before, and whether they count in its slice for the account with as much work. */
async function countedBefore(sql: Sql, { service, slice, boot, first, last }: SignedSheet) {
  const number = SERVICES.indexOf(service);
  const doubled = await sql<{ identity: Buffer; account_id: number; work: string; anchor_height: bigint }[]>`
    select identity, account_id, work::text, anchor_height from doubled_shares
    where boot_id = ${Buffer.from(boot, 'hex')} and service = ${number} and sequence between ${first} and ${last}`;
  if (doubled.length === 0) return [];
  let [from, to] = [Number.MAX_SAFE_INTEGER, 0];
  for (const row of doubled)
    [from, to] = [Math.min(from, Number(row.anchor_height)), Math.max(to, Number(row.anchor_height))];
  const counted = await sql<{ identity: Buffer; account_id: number; work: string }[]>`
    select identity, account_id, work::text from shares
    where anchor_height between ${from} and ${to} and slice = ${slice} and service = ${number}
      and identity = any(${byteaTexts(doubled.map((row) => row.identity.toString('hex')))}::text[]::bytea[])`;
  const now = new Map(counted.map((row) => [row.identity.toString('hex'), row]));
  const payloads = await madePayloads(sql, [...new Set(doubled.map((row) => row.account_id))]);
  return doubled.map((row) => {
    const identity = row.identity.toString('hex');
    const found = now.get(identity);
    const isThere = found?.account_id === row.account_id && BigInt(found.work) >= BigInt(row.work);
    return { identity, account: payloads.get(row.account_id) as Buffer, isThere };
  });
}
