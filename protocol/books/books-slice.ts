/**
 * Slice records (books rules 2, 3 and 12): published by a pool for each slice when it closes, with a chain of hashes
 * over them. Everything in a record but the work itself follows from the ledger and the pool's terms, so anyone can
 * recompute it without having watched the pool.
 */
import { type Bytes, ByteWriter, bigintToBytesBE, fromHex, toHex } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { targetFromBytes, workOfTarget } from '../ledger/target.ts';
import { NETWORKS, type NetworkName } from '../network.ts';

/** Slices, heights and amounts of terms are such numbers. */
export const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

export type BooksService = 'pplns' | 'solo';

/** The terms of a slice: fixed when it opens. */
export type SliceTerms = {
  readonly slice_cuts: number;
  /** W in expected blocks of the network, in thousandths. */
  readonly window_thousandths: number;
  readonly fee_ppm: number;
};

export type SliceRecord = SliceTerms & {
  readonly network: NetworkName;
  readonly service: BooksService;
  readonly slice: number;
  /** Target of work on the cut `slice * slice_cuts`, 64 hex characters. */
  readonly target: string;
  readonly window_work: string;
  readonly accounts: number;
  readonly total_work: string;
  readonly root: string;
  /** `chain` of the record before; `FIRST_CHAIN` in the pool's first. */
  readonly previous: string;
  /** Hash over all of the above: `sliceChain`. */
  readonly chain: string;
};

/** A record as `slices/SERVICE` shows it, with the list of its slice's rewards; null before that is made. */
export type ShownRecord = SliceRecord & { readonly credits?: { readonly root: string } | null };

/** `previous` of the first record of a service. */
export const FIRST_CHAIN = '00'.repeat(ID_BYTES);

/**
 * A window is never smaller than this many closed slices with work: within a single slice, miners could profit from
 * timing.
 */
export const WINDOW_SLICES = 12;

/** W of a slice: by the target of its first cut, or the work of the newest closed slices before it that have any. */
export function windowWork(target: bigint, windowThousandths: bigint, newestTotals: Iterable<bigint>): bigint {
  const wanted = (workOfTarget(target) * windowThousandths) / 1000n;
  let floor = 0n;
  let counted = 0;
  for (const total of newestTotals) {
    if (counted === WINDOW_SLICES) break;
    if (total === 0n) continue;
    floor += total;
    counted++;
  }
  const work = wanted > floor ? wanted : floor;
  return work < 1n ? 1n : work;
}

export const firstCutOf = (slice: number, sliceCuts: number): number => slice * sliceCuts;

const WORK = /^(0|[1-9]\d{0,77})$/;

export function readWork(text: string): bigint {
  if (typeof text !== 'string' || !WORK.test(text)) throw new ProtocolError('out_of_range', 'work is a whole number');
  return BigInt(text);
}

/** The hash that joins a record to the one before it. Throws for a record that has no such form. */
export function sliceChain(record: Omit<SliceRecord, 'chain'>): string {
  const bytes = new ByteWriter(512)
    .raw(fromHex(record.previous, ID_BYTES))
    .u32(NETWORKS[record.network].id)
    .text(record.service)
    .height(record.slice)
    .u32(record.slice_cuts)
    .u32(record.window_thousandths)
    .u32(record.fee_ppm)
    .raw(fromHex(record.target, 32))
    .raw(bigintToBytesBE(readWork(record.window_work), 32))
    .u32(record.accounts)
    .u128(readWork(record.total_work))
    .raw(fromHex(record.root, ID_BYTES))
    .done();
  return toHex(id(LABELS.booksSlice, bytes));
}

/** One hash over the newest closed slice of each service, in the order of their names; payouts commit to it. */
export function booksHead(chains: Readonly<Record<BooksService, string>>): Bytes {
  return id(
    LABELS.booksHead,
    new ByteWriter(2 * ID_BYTES).raw(fromHex(chains.pplns, ID_BYTES)).raw(fromHex(chains.solo, ID_BYTES)).done(),
  );
}

export const recordTarget = (record: Pick<SliceRecord, 'target'>): bigint =>
  targetFromBytes(fromHex(record.target, 32));
