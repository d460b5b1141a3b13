/**
 * Slices (docs/protocol/books.md, rules 2, 3 and 12): shares are summed by account into the slice that they are in
 * (share-slice.ts); work of one that is not open yet waits for it. A slice ends with the cuts of its number. Closing it commits its work by a Merkle sum tree, joins its
 * record to the chain of records and opens the next, with the terms of the options (terms-in-force.ts), the fee that its operator set (edits/edited-fee.ts) or the terms that are noted of it (noted-terms.ts). Slices that passed while the pool was offline are opened and closed empty, so that the
 * numbers have no gaps.
 */
import { FIRST_CHAIN, sliceChain, WINDOW_SLICES, windowWork } from '../../protocol/books/books-slice.ts';
import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import { compareBytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { editedFee } from '../edits/edited-fee.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { PoolError } from '../pool-error.ts';
import { takeNotedTerms } from './noted-terms.ts';
import { packWork } from './packed.ts';
import { optionTerms, type TermsOptions } from './terms-in-force.ts';

/** How long the ends of slices are kept for front ends that were offline. */
const ENDS_DAYS = 30;

export type OpenSlice = { readonly service: number; readonly number: number };

export async function openSlices(transaction: Transaction): Promise<Map<number, OpenSlice>> {
  const rows = await transaction<OpenSlice[]>`select service, number from slices where closed_height is null`;
  return new Map(rows.map(({ service, number }) => [service, { service, number }]));
}

/** S never changes in a pool (rule 3): audits would find the books false, and the numbers of slices would jump. */
export async function insistSliceCuts(sql: Sql, sliceCuts: number): Promise<void> {
  const [row] = await sql<{ slice_cuts: number }[]>`select slice_cuts from slices order by number desc limit 1`;
  if (row !== undefined && row.slice_cuts !== sliceCuts)
    throw new PoolError(
      'options_disagree',
      `slices of this pool have ${row.slice_cuts} cuts, and that can never be changed: start it with --slice-cuts ${row.slice_cuts}`,
    );
}

export type SliceOptions = TermsOptions & { readonly network: { readonly name: NetworkName } };

export type Moment = {
  /** Newest finalized cut. */
  readonly height: number;
  /** Target of work on a slice's first cut. */
  readonly targetOf: (slice: number) => bigint;
};

/** The slices that are still to be opened when `height` is final, oldest first; a new pool begins with the present one. */
export function slicesToOpen(open: ReadonlyMap<number, OpenSlice>, options: SliceOptions, height: number): number[] {
  const number = sliceOfHeight(height, options.sliceCuts);
  const newest = options.services.map((service) => open.get(service)?.number ?? number - 1);
  const first = Math.min(...newest) + 1;
  return Array.from({ length: Math.max(0, number - first + 1) }, (_, i) => first + i);
}

/**
 * Published terms of a slice stay; otherwise a fee that the operator set for it counts; otherwise the terms of the
 * options for it.
 */
async function termsOf(transaction: Transaction, options: SliceOptions, { service, number }: OpenSlice) {
  const noted = await takeNotedTerms(transaction, service, number);
  if (noted !== undefined) return noted;
  const own = await optionTerms(transaction, service, number);
  return {
    windowThousandths: BigInt(own?.window ?? options.windowThousandths),
    feePpm: BigInt((await editedFee(transaction, service, number)) ?? own?.fee ?? options.feePpm.get(service) ?? 0n),
  };
}

async function openSlice(transaction: Transaction, options: SliceOptions, next: OpenSlice, target: bigint) {
  const { service, number } = next;
  const newest = await transaction<{ total: string }[]>`select total::text from slices
    where service = ${service} and closed_height is not null and total > 0
    order by number desc limit ${WINDOW_SLICES}`;
  const { windowThousandths, feePpm } = await termsOf(transaction, options, next);
  const work = windowWork(
    target,
    windowThousandths,
    newest.map((row) => BigInt(row.total)),
  );
  await transaction`insert into slices (service, number, window_work, opened_height, slice_cuts, window_thousandths,
      fee_ppm, target)
    values (${service}, ${number}, ${String(work)}::numeric, ${number * options.sliceCuts}, ${options.sliceCuts},
      ${Number(windowThousandths)}, ${Number(feePpm)}, ${Buffer.from(targetToBytes(target))})`;
  // Work of this slice that came while an earlier one was open.
  await transaction`with came as (delete from later_work where service = ${service} and slice <= ${number} returning *)
    insert into open_work (service, account_id, work) select service, account_id, sum(work) from came
    group by service, account_id`;
}

/**
 * How far each journal is in the slice that closes; read by the front end that keeps the journal (feed/slice-marks.ts).
 * If the chain is behind the journals, the books already have entries of future slices: these are not in this one.
 */
async function noteEnds(transaction: Transaction, slice: number): Promise<void> {
  await transaction`insert into slice_ends (slice, boot_id, through)
    select ${slice}, p.boot_id, p.through from (
      select j.boot_id, least(j.through, (select min(l.first) - 1 from later_starts l
        where l.boot_id = j.boot_id and l.slice > ${slice})) as through from journal_positions j) p
    where p.through > coalesce((select max(e.through) from slice_ends e where e.boot_id = p.boot_id), -1)
    on conflict do nothing`;
  await transaction`delete from later_starts where slice <= ${slice}`;
  // Of entries without their ends no receipts are made: so nothing needs to be passed over in them any more.
  await transaction`with gone as (delete from slice_ends where at < now() - ${ENDS_DAYS} * interval '1 day' returning *)
    delete from doubled_shares d using gone g where d.boot_id = g.boot_id and d.sequence <= g.through`;
}

/** Brings the slices to a finalized height. Returns those that were closed. */
export async function advanceSlices(
  transaction: Transaction,
  options: SliceOptions,
  moment: Moment,
): Promise<OpenSlice[]> {
  const open = await openSlices(transaction);
  const closed: OpenSlice[] = [];
  for (const number of slicesToOpen(open, options, moment.height))
    for (const service of options.services) {
      const slice = open.get(service);
      if (slice !== undefined && slice.number >= number) continue;
      if (slice !== undefined) {
        await closeSlice(transaction, options.network.name, slice);
        if (service === options.services[0]) await noteEnds(transaction, slice.number);
        closed.push(slice);
      }
      await openSlice(transaction, options, { service, number }, moment.targetOf(number));
      open.set(service, { service, number });
    }
  return closed;
}

type TermsRow = {
  slice_cuts: number;
  window_thousandths: number;
  fee_ppm: number;
  target: Buffer;
  window_work: string;
  before: Buffer | null;
};

async function closeSlice(transaction: Transaction, network: NetworkName, slice: OpenSlice): Promise<void> {
  const { service, number } = slice;
  const rows = await transaction<{ account_id: number; payload: Buffer; work: string }[]>`
    select o.account_id, coalesce(n.payload, a.payload) as payload, o.work from open_work o
    join accounts a on a.id = o.account_id left join account_names n on n.account_id = a.id where o.service = ${service}`;
  const leaves = rows
    .map((row) => ({ accountId: row.account_id, key: new Uint8Array(row.payload), value: BigInt(row.work) }))
    .sort((a, b) => compareBytes(a.key, b.key));
  const { root } = sumTree(leaves);
  const [row] = await transaction<TermsRow[]>`select s.slice_cuts, s.window_thousandths, s.fee_ppm, s.target,
      s.window_work::text, (select chain from slices b where b.service = s.service and b.number = s.number - 1) as before
    from slices s where s.service = ${service} and s.number = ${number}`;
  const terms = row as TermsRow;
  const previous = terms.before?.toString('hex') ?? FIRST_CHAIN;
  const chain = sliceChain({
    network,
    service: SERVICES[service] as (typeof SERVICES)[number],
    slice: number,
    slice_cuts: terms.slice_cuts,
    window_thousandths: terms.window_thousandths,
    fee_ppm: terms.fee_ppm,
    target: terms.target.toString('hex'),
    window_work: terms.window_work,
    accounts: root.count,
    total_work: String(root.sum),
    root: toHex(root.hash),
    previous,
  });
  await transaction`update slices set closed_height = ${(number + 1) * terms.slice_cuts},
    total = ${String(root.sum)}::numeric, root = ${Buffer.from(root.hash)}, leaves = ${Buffer.from(packWork(leaves))},
    previous = ${Buffer.from(fromHex(previous))}, chain = ${Buffer.from(fromHex(chain))}
    where service = ${service} and number = ${number}`;
  await transaction`delete from open_work where service = ${service}`;
}
