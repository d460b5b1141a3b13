/**
 * Lists of the books as packed rows: a closed slice of 10,000 accounts is one value of 200 KB instead of 10,000 table
 * rows, and it is written once and never changed. Rows are (u32 account id, value), ascending by account payload.
 */
import { ByteReader, type Bytes, ByteWriter } from '../../protocol/bytes.ts';

export type PackedRow = { readonly accountId: number; readonly value: bigint };

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

export const packWork = pack((writer, value) => writer.u128(value));
export const unpackWork = unpack((reader) => reader.u128());
export const packCredits = pack((writer, value) => writer.u64(value));
export const unpackCredits = unpack((reader) => reader.u64());
