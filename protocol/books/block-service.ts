/**
 * The service of a pool that a block was found for (books rule 22), encoded in the extranonce. It is part of the
 * header's reward root, so it was fixed before the block was mined, every job shows it to its miner, and the ledger
 * keeps it with the block.
 */

import type { Bytes } from '../bytes.ts';
import { attempt } from '../errors.ts';
import { decodeExtranonce } from '../ledger/tag.ts';
import type { BooksService } from './books-slice.ts';

/** Unique bytes of an extranonce: boot id 8, thread 1, connection 4, generation 4. */
export const UNIQUE_BYTES = 17;
const THREAD_AT = 8;
/** Set in the byte of the thread on connections of solo. Threads are numbered up to 64. */
export const SOLO_MARK = 0x80;

/** Undefined for an extranonce of another form. */
export function serviceOfExtranonce(extranonce: Bytes): BooksService | undefined {
  const read = attempt(() => decodeExtranonce(extranonce));
  if (!read.ok || read.value.unique.length !== UNIQUE_BYTES) return undefined;
  return ((read.value.unique[THREAD_AT] as number) & SOLO_MARK) === 0 ? 'pplns' : 'solo';
}

/**
 * The service under which a block of the pool is booked. No job of a pool has an extranonce of another form, so such a
 * block is a stranger's, and counts as PPLNS. (Otherwise anybody could make every audit of a pool inconclusive at the
 * price of one block.)
 */
export const bookedService = (extranonce: Bytes): BooksService => serviceOfExtranonce(extranonce) ?? 'pplns';
