/** Names of processes (consensus rule 22): `u64 milliseconds of the start | 8 random bytes`. */
import { randomBytes } from 'node:crypto';
import { ByteReader, type Bytes, ByteWriter, concat } from '../../../protocol/bytes.ts';

export const PROCESS_BYTES = 16;
const START_BYTES = 8;

/** The start time only decides which of two listening processes continues. A wrong clock has no other effect. */
export const processName = (startMillis: number): Bytes =>
  concat(new ByteWriter(START_BYTES).u64(BigInt(startMillis)).done(), randomBytes(PROCESS_BYTES - START_BYTES));

export function isBefore(one: Bytes, other: Bytes): boolean {
  const [a, b] = [new ByteReader(one).u64(), new ByteReader(other).u64()];
  return a === b ? Buffer.compare(one, other) < 0 : a < b;
}
