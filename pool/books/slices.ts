/**
 * Slices (docs/pool.md, books rules): shares are summed by account into the slice that is open when they are taken in. A
 * slice ends with the cuts of its number; closing it freezes its work, commits it by a Merkle sum tree and opens the next,
 * whose window work is frozen at that moment (books rule 3).
 */
import { compareBytes } from '../../protocol/bytes.ts';
import { sliceOfHeight } from '../../protocol/pplns.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import { workOfTarget } from '../../protocol/target.ts';
import type { Transaction } from '../database/connect.ts';
import { packWork } from './packed.ts';

export type OpenSlice = { readonly service: number; readonly number: number; readonly windowWork: bigint };

export async function openSlices(transaction: Transaction): Promise<Map<number, OpenSlice>> {
  const rows = await transaction<{ service: number; number: number; window_work: string }[]>`
    select service, number, window_work from slices where closed_height is null`;
  return new Map(
    rows.map((row) => [row.service, { service: row.service, number: row.number, windowWork: BigInt(row.window_work) }]),
  );
}

export type SliceOptions = {
  readonly sliceCuts: number;
  /** W in expected blocks of the network, in thousandths: 4 blocks are 4000. */
  readonly windowThousandths: bigint;
  readonly services: readonly number[];
};

export type Moment = { readonly height: number; readonly target: bigint };

/** Slices whose work a window never falls below: a window within one slice would pay for timing it. */
export const WINDOW_SLICES = 12;

async function windowWork(
  transaction: Transaction,
  options: SliceOptions,
  service: number,
  target: bigint,
): Promise<bigint> {
  const wanted = (workOfTarget(target) * options.windowThousandths) / 1000n;
  const [row] = await transaction<{ total: string }[]>`select coalesce(sum(total), 0)::text as total from (
    select total from slices where service = ${service} and closed_height is not null and total > 0
    order by number desc limit ${WINDOW_SLICES}) s`;
  const floor = BigInt((row as { total: string }).total);
  const work = wanted > floor ? wanted : floor;
  return work < 1n ? 1n : work;
}

/** Brings the slices to a finalized height. Returns those that were closed. */
export async function advanceSlices(
  transaction: Transaction,
  options: SliceOptions,
  moment: Moment,
): Promise<OpenSlice[]> {
  const number = sliceOfHeight(moment.height, options.sliceCuts);
  const open = await openSlices(transaction);
  const closed: OpenSlice[] = [];
  for (const service of options.services) {
    const slice = open.get(service);
    if (slice !== undefined && slice.number >= number) continue;
    if (slice !== undefined) {
      await closeSlice(transaction, slice, moment.height);
      closed.push(slice);
    }
    const window = await windowWork(transaction, options, service, moment.target);
    await transaction`insert into slices (service, number, window_work, opened_height)
      values (${service}, ${number}, ${String(window)}::numeric, ${moment.height})`;
  }
  return closed;
}

async function closeSlice(transaction: Transaction, slice: OpenSlice, height: number): Promise<void> {
  const rows = await transaction<{ account_id: number; payload: Buffer; work: string }[]>`
    select o.account_id, a.payload, o.work from open_work o join accounts a on a.id = o.account_id
    where o.service = ${slice.service}`;
  const leaves = rows
    .map((row) => ({ accountId: row.account_id, key: new Uint8Array(row.payload), value: BigInt(row.work) }))
    .sort((a, b) => compareBytes(a.key, b.key));
  const { root } = sumTree(leaves);
  await transaction`update slices set closed_height = ${height}, total = ${String(root.sum)}::numeric,
    root = ${Buffer.from(root.hash)}, leaves = ${Buffer.from(packWork(leaves))}
    where service = ${slice.service} and number = ${slice.number}`;
  await transaction`delete from open_work where service = ${slice.service}`;
}
