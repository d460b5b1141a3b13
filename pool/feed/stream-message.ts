/**
 * Messages of the share stream. Entries: those of one boot as `u64 sequence | u32 length | record`, packed, without a
 * gap except perhaps before the first. A gap report: the books' position and a unique word. Both are sealed (seal.ts):
 * shares are money, and only messages from front ends of this pool are read.
 */
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { JournalEntry } from '../journal/journal.ts';

const HEAD_BYTES = 12;

export function packEntries(entries: readonly JournalEntry[]): Uint8Array<ArrayBuffer> {
  const heads = new Uint8Array(HEAD_BYTES * entries.length);
  const view = new DataView(heads.buffer);
  const parts: Bytes[] = [];
  for (const [i, { sequence, record }] of entries.entries()) {
    view.setBigUint64(i * HEAD_BYTES, BigInt(sequence), true);
    view.setUint32(i * HEAD_BYTES + 8, record.length, true);
    parts.push(heads.subarray(i * HEAD_BYTES, (i + 1) * HEAD_BYTES), record);
  }
  return concat(...parts);
}

/**
 * Fields of a message besides its entries. `after` is the sequence before the first. `reign` identifies the term that
 * it was sent for: a message of an earlier term, redelivered by a restored Redis, may contain a slice that its front
 * end has corrected since.
 */
export type MessageHead = {
  readonly bootId: string;
  readonly after: number;
  readonly slice?: number | undefined;
  readonly reign: string;
};

export function unpackEntries({ bootId, after, slice }: Omit<MessageHead, 'reign'>, bytes: Bytes): JournalEntry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: JournalEntry[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < HEAD_BYTES) throw new ProtocolError('truncated', 'stream message ends inside an entry');
    const sequence = view.getBigUint64(at, true);
    const end = at + HEAD_BYTES + view.getUint32(at + 8, true);
    if (end > bytes.length) throw new ProtocolError('truncated', 'stream message ends inside an entry');
    if (sequence > BigInt(Number.MAX_SAFE_INTEGER)) throw new ProtocolError('out_of_range', 'sequence is too large');
    const entry: JournalEntry = {
      bootId,
      sequence: Number(sequence),
      record: bytes.subarray(at + HEAD_BYTES, end),
      ...(slice === undefined ? {} : { slice }),
    };
    entries.push(entries.length === 0 && entry.sequence !== after + 1 ? { ...entry, after } : entry);
    at = end;
  }
  return entries;
}

/** The context that a message is sealed with: it cannot be opened as one of another boot, position, slice or term. */
export const messageName = ({ bootId, after, slice, reign }: MessageHead): string =>
  `${bootId} ${after} ${slice ?? '-'} ${reign}`;

export const gapReport = (position: number, word: string): string => `${position} ${word}`;

/** The position in a report; undefined if it is not a report. */
export function readGap(report: string): number | undefined {
  const match = /^(-1|\d{1,15}) /.exec(report);
  return match === null ? undefined : Number(match[1]);
}
