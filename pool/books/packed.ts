/**
 * Lists of the books as packed rows: a closed slice of 10,000 accounts is one value of 200 KB instead of 10,000 table
 * rows, and it is written once and never changed. Rows are (u32 account id, value), ascending by account payload.
 */
import { ByteReader, type Bytes, ByteWriter } from '../../protocol/bytes.ts';

export type PackedRow = { readonly accountId: number; readonly value: bigint };

/** Account id and u128. */
const WORK_ROW_BYTES = 20;
/** Account id and u64. */
export const CREDIT_BYTES = 12;

const pack =
  (write: (writer: ByteWriter, value: bigint) => void) =>
  (rows: readonly PackedRow[]): Uint8Array<ArrayBuffer> => {
    const writer = new ByteWriter(Math.max(16, rows.length * 20));
    for (const row of rows) write(writer.u32(row.accountId), row.value);
    return writer.done();
  };

const unpack =
  (read: (reader: ByteReader) => bigint) =>
  (bytes: Bytes): PackedRow[] => {
    const reader = new ByteReader(bytes);
    const rows: PackedRow[] = [];
    while (reader.left > 0) rows.push({ accountId: reader.u32(), value: read(reader) });
    return rows;
  };

/** Calls `tell` with each row of a slice's packed work, so that a window of a million rows is never all in memory. */
export function eachWork(bytes: Bytes, tell: (accountId: number, work: bigint) => void): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; at += WORK_ROW_BYTES) {
    const high = view.getBigUint64(at + 12, true);
    const low = view.getBigUint64(at + 4, true);
    tell(view.getUint32(at, true), high === 0n ? low : (high << 64n) | low);
  }
}

/** The accounts of several slices, each once. Ids are counted from 1 by the database, so a table of marks is small. */
export function accountIdsOf(lists: readonly Bytes[]): number[] {
  const views = lists.map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  let most = 0;
  for (const view of views)
    for (let at = 0; at < view.byteLength; at += WORK_ROW_BYTES) most = Math.max(most, view.getUint32(at, true));
  const isIn = new Uint8Array(most + 1);
  for (const view of views)
    for (let at = 0; at < view.byteLength; at += WORK_ROW_BYTES) isIn[view.getUint32(at, true)] = 1;
  const ids: number[] = [];
  for (let id = 0; id <= most; id++) if (isIn[id] === 1) ids.push(id);
  return ids;
}

export const packWork = pack((writer, value) => writer.u128(value));
export const unpackWork = unpack((reader) => reader.u128());
export const packCredits = pack((writer, value) => writer.u64(value));
export const unpackCredits = unpack((reader) => reader.u64());

/**
 * One account's credit in a packed list. Reads half the list on average; `CreditIndex` is for lists that are read
 * often.
 */
export function creditOf(bytes: Bytes, accountId: number): bigint | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; at += CREDIT_BYTES)
    if (view.getUint32(at, true) === accountId) return view.getBigUint64(at + 4, true);
  return undefined;
}

/** Adds a packed list to sums by account id: a hundred times as fast as by rows. Ids beyond the sums are left out. */
export function addCreditsById(sums: BigUint64Array, bytes: Bytes): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; at += CREDIT_BYTES) {
    const id = view.getUint32(at, true);
    const sum = sums[id];
    if (sum !== undefined) sums[id] = sum + view.getBigUint64(at + 4, true);
  }
}

/** Room for the row's number beside the account id (u32) in a double, which holds 53 bits exactly. */
const ROWS = 2 ** 21;

/** A packed list of credits in the order of account ids, for binary search: 8 bytes a row beside the list. */
export class CreditIndex {
  readonly #view: DataView;
  /** Account id * ROWS + row, ascending. */
  readonly #keys: Float64Array;

  constructor(bytes: Bytes) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#keys = new Float64Array(bytes.length / CREDIT_BYTES);
    if (this.#keys.length > ROWS) throw new RangeError(`a list of ${this.#keys.length} credits, at most ${ROWS}`);
    for (let row = 0; row < this.#keys.length; row++)
      this.#keys[row] = this.#view.getUint32(row * CREDIT_BYTES, true) * ROWS + row;
    this.#keys.sort();
  }

  creditOf(accountId: number): bigint | undefined {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] as number) < accountId * ROWS) low = middle + 1;
      else high = middle;
    }
    const row = (this.#keys[low] ?? -1) - accountId * ROWS;
    return row >= 0 && row < ROWS ? this.#view.getBigUint64(row * CREDIT_BYTES + 4, true) : undefined;
  }
}
