/**
 * Compares the store's logs with the checksums in them: the log of the newest of what it has, and the manifest, the log of
 * its tables. The store ends its reading at the first record that a disk has changed, or seems to be cut off by a changed
 * length, without a word: all requests behind it, or in tables named behind it, would be forgotten, and paid again. To be
 * called before the store is opened, because it then deletes the log, and tables that it does not know of.
 *
 * A log: blocks of 32 KiB with records of `u32 checksum | u16 length | u8 type | data`, of which the checksum has type and
 * data. What a power failure cut off is no damage: nobody was told that it is on the disk.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Checksum } from './checksum.ts';

const BLOCK_BYTES = 32_768;
const HEADER_BYTES = 7;
/** What the disk did not get before a power failure reads as zeros; no record ends with as many. */
const UNWRITTEN_BYTES = 16;

const isUnwritten = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0);

/** What lies at a place of a block: the length of a whole record, or why there is none. */
function recordAt(block: Buffer, at: number): number | 'cut' | 'damaged' {
  if (block.length - at < HEADER_BYTES) return 'cut';
  const length = block.readUInt16LE(at + 4);
  const end = at + HEADER_BYTES + length;
  if (end > block.length) return 'cut';
  return Checksum.of(block.subarray(at + 6, end)) === block.readUInt32LE(at) ? HEADER_BYTES + length : 'damaged';
}

/** A record that seems to be cut off, but has all of its data under another length: only the length was changed. */
function hasOtherLength(block: Buffer, at: number): boolean {
  if (block.length - at < HEADER_BYTES) return false;
  const [wanted, checksum] = [block.readUInt32LE(at), new Checksum()];
  return block.subarray(at + 6).some((byte) => checksum.add(byte).value === wanted);
}

function isWholeBlock(block: Buffer, isLast: boolean): boolean {
  for (let at = 0; at < block.length; ) {
    const rest = block.subarray(at);
    // The end of a block has no place for a record.
    if (isUnwritten(rest) && (isLast || rest.length < HEADER_BYTES)) return true;
    const found = recordAt(block, at);
    if (typeof found === 'number') at += found;
    else if (found === 'cut') return isLast && !hasOtherLength(block, at);
    else return isLast && rest.length > UNWRITTEN_BYTES && isUnwritten(rest.subarray(-UNWRITTEN_BYTES));
  }
  return true;
}

function isWholeLog(file: Buffer): boolean {
  const end = file.findLastIndex((byte) => byte !== 0) + 1;
  for (let at = 0; at < end; at += BLOCK_BYTES)
    if (!isWholeBlock(file.subarray(at, at + BLOCK_BYTES), at + BLOCK_BYTES >= end)) return false;
  return true;
}

/** Without one of these the store begins anew, and deletes the others, or forgets the newest records. */
const NEEDED = { CURRENT: /^CURRENT$/, 'MANIFEST-*': /^MANIFEST-\d+$/, '*.log': /^\d+\.log$/ };
const PART = /^(CURRENT|MANIFEST-\d+|\d+\.(log|ldb|sst))$/;
/** All that a very first start has made before its log. */
const FIRST = ['CURRENT', 'MANIFEST-000001'];

function missingFrom(names: readonly string[]): string | undefined {
  const parts = names.filter((name) => PART.test(name));
  if (parts.every((name) => FIRST.includes(name))) return undefined;
  return Object.entries(NEEDED).find(([, needed]) => !parts.some((name) => needed.test(name)))?.[0];
}

/** The name of a log that is damaged or missing; undefined if there is none. */
export async function damagedLog(directory: string): Promise<string | undefined> {
  // There is no directory before the first start.
  const names = await readdir(directory).catch(() => []);
  const missing = missingFrom(names);
  if (missing !== undefined) return `${missing} (missing)`;
  for (const name of names) {
    if (!/^(\d+\.log|MANIFEST-\d+)$/.test(name)) continue;
    // Another process, which has the store open, may have deleted it meanwhile.
    const file = await readFile(join(directory, name)).catch(() => Buffer.alloc(0));
    if (!isWholeLog(file)) return name;
  }
  return undefined;
}
